-- Writes beyond the mean, of the units that each process wrote last.
SELECT writer AS name, sum(greatest(0, writes - (SELECT avg(writes) FROM units))) AS amount
FROM units GROUP BY writer ORDER BY writer;
