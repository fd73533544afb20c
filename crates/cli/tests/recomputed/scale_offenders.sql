-- By how much the requests of each process fall short of full scale.
SELECT coalesce(comm, '') AS name, sum(1 - scale) AS amount
FROM outstanding WHERE op IN ('read', 'write') GROUP BY name ORDER BY name;
