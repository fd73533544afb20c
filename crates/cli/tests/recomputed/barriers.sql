-- KiB written between one barrier and the next that has writes before it: a flush, or a
-- write that is durable, whose own bytes come after its barrier.
WITH marked AS (
    SELECT *, count(*) FILTER (op = 'flush' OR durable) OVER (ORDER BY place) AS barriers
    FROM judged
), intervals AS (
    SELECT sum(bytes) FILTER (op = 'write') // 1024 AS kib
    FROM marked WHERE barriers < (SELECT max(barriers) FROM marked)
    GROUP BY barriers HAVING sum(bytes) FILTER (op = 'write') > 0
)
SELECT at_share(list(kib), 0.25) AS "p25", at_share(list(kib), 0.5) AS "p50",
       at_share(list(kib), 0.75) AS "p75", at_share(list(kib), 0.99) AS "p99", max(kib) AS "max"
FROM intervals;
