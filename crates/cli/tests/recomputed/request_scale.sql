-- The rule of request scale: one row, columns by their places under rules.request_scale.
SELECT avg(scale) FILTER (op IN ('read', 'write')) AS "score",
       sum(scale * bytes) FILTER (op IN ('read', 'write'))
           / sum(bytes) FILTER (op IN ('read', 'write')) AS "figures.score_by_bytes",
       count(*) FILTER (op IN ('discard', 'write_zeroes')) AS "figures.discards",
       count(*) FILTER (op IN ('discard', 'write_zeroes')) / count(*) AS "figures.discard_ratio",
       (SELECT count(*) FROM judged WHERE op = 'flush') AS "figures.flushes",
       (SELECT count(*) FROM judged WHERE durable) AS "figures.durable_writes"
FROM outstanding;
