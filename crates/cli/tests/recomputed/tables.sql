-- The tables that the other queries ask, from the two Parquet files.
-- Variables: trace, replayed (paths), phase, unit, page (bytes), channels.

-- The value at rank ceil(q n): the smallest that a share q of all does not exceed.
CREATE MACRO at_share(numbers, q) AS
    list_sort(numbers)[greatest(1, CAST(ceil(CAST(q AS DOUBLE) * len(numbers)) AS BIGINT))];

-- Between the two middle ones, rounded down.
CREATE MACRO middle(numbers) AS
    (list_sort(numbers)[(len(numbers) + 1) // 2] + list_sort(numbers)[len(numbers) // 2 + 1]) // 2;

CREATE TABLE recording AS
SELECT file_row_number AS place, issue_ns, complete_ns, op, comm, phase, device, meta,
       CAST(offset_bytes AS BIGINT) AS first_byte,
       CAST(len_bytes AS BIGINT) AS bytes,
       CAST(offset_bytes AS BIGINT) + CAST(len_bytes AS BIGINT) AS end_byte,
       op = 'write' AND (fua OR preflush) AS durable
FROM read_parquet(getvariable('trace'), file_row_number = true);

-- The part that is judged, and what is discarded after it.
CREATE TABLE judged AS SELECT * FROM recording WHERE phase = getvariable('phase');
CREATE TABLE later AS
SELECT * FROM recording
WHERE op = 'discard' AND place > (SELECT max(place) FROM judged);

-- Requests outstanding just before each request: earlier ones that end after its issue.
CREATE TABLE outstanding AS
WITH asked AS (
    SELECT *, CASE WHEN op IN ('read', 'write') THEN greatest(1,
        (end_byte + getvariable('page') - 1) // getvariable('page')
        - first_byte // getvariable('page')) ELSE 0 END AS pages
    FROM judged WHERE op <> 'flush'
)
SELECT mine.place, any_value(mine.op) AS op, any_value(mine.comm) AS comm,
       any_value(mine.bytes) AS bytes, any_value(mine.complete_ns) AS complete_ns,
       count(other.place) AS depth,
       count(other.place) FILTER (other.op = mine.op) AS depth_same,
       least(1, (any_value(mine.pages) + coalesce(sum(other.pages), 0))
                / getvariable('channels')) AS scale
FROM asked AS mine LEFT JOIN asked AS other
     ON other.place < mine.place AND other.complete_ns > mine.issue_ns
GROUP BY mine.place;

-- One row for each write to a unit.
CREATE TABLE unit_writes AS
SELECT place, comm,
       unnest(range(first_byte // getvariable('unit'),
                    (end_byte + getvariable('unit') - 1) // getvariable('unit'))) AS unit
FROM judged WHERE op = 'write';

-- Each unit that was written: how often, and who wrote it last.
CREATE TABLE units AS
SELECT unit, count(*) AS writes, arg_max(coalesce(comm, ''), place) AS writer,
       row_number() OVER (ORDER BY count(*), unit) AS rank
FROM unit_writes GROUP BY unit;

CREATE TABLE replayed AS SELECT * FROM read_parquet(getvariable('replayed'));
