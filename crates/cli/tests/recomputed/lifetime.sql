-- The rule of uniform lifetime: one row, columns by their places under its figures.
-- Gini = 2 sum(rank writes) / (units writes) - (units + 1) / units, ranks from the fewest.
WITH sums AS (
    SELECT count(*) AS units, sum(writes) AS writes, sum(rank * writes) AS ranked,
           max(writes) AS most
    FROM units
)
SELECT units AS "units_written", writes AS "unit_writes", writes / units AS "writes_mean",
       most AS "writes_max",
       2 * ranked / (units * writes) - (units + 1) / units AS "gini",
       (SELECT sum(u.writes) FROM units AS u WHERE u.rank > units - round(0.01 * units)) / writes
           AS "top_1_percent_share",
       (SELECT sum(u.writes) FROM units AS u WHERE u.rank > units - round(0.1 * units)) / writes
           AS "top_10_percent_share"
FROM sums;
