-- What is in the trace: one row, each column named by its place in the report's JSON.
SELECT count(*) FILTER (op <> 'flush') AS "trace.requests",
       count(*) FILTER (op = 'read') AS "trace.reads",
       count(*) FILTER (op = 'write') AS "trace.writes",
       count(*) FILTER (op = 'discard') AS "trace.discards",
       count(*) FILTER (op = 'write_zeroes') AS "trace.write_zeroes",
       count(*) FILTER (op = 'flush') AS "trace.flushes",
       coalesce(sum(bytes) FILTER (op = 'read'), 0) AS "trace.bytes_read",
       coalesce(sum(bytes) FILTER (op = 'write'), 0) AS "trace.bytes_written",
       coalesce(sum(bytes) FILTER (op = 'discard'), 0) AS "trace.bytes_discarded",
       coalesce(sum(bytes) FILTER (op = 'write_zeroes'), 0) AS "trace.bytes_zeroed",
       coalesce(sum(bytes) FILTER (op = 'write' AND meta), 0) AS "trace.bytes_written_metadata",
       middle(list(bytes) FILTER (op = 'read')) AS "trace.read_bytes_p50",
       middle(list(bytes) FILTER (op = 'write')) AS "trace.write_bytes_p50",
       middle(list(bytes) FILTER (op = 'discard')) AS "trace.discard_bytes_p50",
       middle(list(bytes) FILTER (op = 'write_zeroes')) AS "trace.write_zeroes_bytes_p50",
       count(*) FILTER (op <> 'flush' AND first_byte % 4096 = 0 AND bytes % 4096 = 0)
           AS "trace.aligned_4k",
       max(end_byte) FILTER (op <> 'flush') AS "trace.address_end",
       max(greatest(issue_ns, coalesce(complete_ns, issue_ns))) - min(issue_ns)
           AS "trace.duration_ns",
       (SELECT max(depth) + 1 FROM outstanding WHERE complete_ns IS NOT NULL)
           AS "trace.queue_depth_max",
       (SELECT count(*) * getvariable('unit') FROM units) AS "trace.unique_bytes_written"
FROM judged;
