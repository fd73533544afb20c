-- What the replay measured, from its requests: one row, each column named by its place in
-- the report's JSON. What a drive programs is no request's alone; the report's own bytes of
-- it (variable programmed) are divided by the bytes written.
SELECT count(*) FILTER (op <> 'flush') AS "result.requests_completed",
       count(*) FILTER (op = 'flush') AS "result.flushes_completed",
       sum(len_bytes) FILTER (op = 'read') AS "result.host_bytes_read",
       sum(len_bytes) FILTER (op = 'write') AS "result.host_bytes_written",
       getvariable('programmed') / sum(len_bytes) FILTER (op = 'write')
           AS "result.write_amplification",
       sum(buffer_hits) AS "result.buffer_hits",
       sum(units_unmapped) AS "result.unmapped_reads",
       max(complete_ns) AS "result.simulated_ns",
       count(*) FILTER (op <> 'flush') / (max(complete_ns) / 1e9) AS "result.iops",
       sum(len_bytes) FILTER (op IN ('read', 'write')) / (max(complete_ns) / 1e9)
           AS "result.bytes_per_second",
       sum(complete_ns - submit_ns) / max(complete_ns) AS "result.queue_depth.mean",
       -- What completes when another request is submitted is done.
       (SELECT max(depth) FROM (
           SELECT sum(change) OVER (ORDER BY instant, change ROWS UNBOUNDED PRECEDING) AS depth
           FROM (SELECT submit_ns AS instant, 1 AS change FROM replayed
                 UNION ALL SELECT complete_ns, -1 FROM replayed)))
           AS "result.queue_depth.max",
       max(submit_ns - arrival_ns) AS "result.behind_ns"
FROM replayed;
