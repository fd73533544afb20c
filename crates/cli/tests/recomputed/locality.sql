-- What the map is asked: one row, columns by their places under rules.locality.figures.
WITH visits AS (
    SELECT unnest(range(first_byte // getvariable('reach'),
                        (end_byte - 1) // getvariable('reach') + 1)) AS page
    FROM judged WHERE op <> 'flush' AND bytes > 0
)
SELECT (SELECT count(*) FROM visits) AS "visits",
       (SELECT count(DISTINCT page) FROM visits) AS "pages_visited",
       sum((end_byte + getvariable('unit') - 1) // getvariable('unit')
           - first_byte // getvariable('unit')) AS "lookups"
FROM judged WHERE op <> 'flush' AND bytes > 0;
