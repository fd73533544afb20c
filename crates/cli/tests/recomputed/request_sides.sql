-- Sizes and depths of reads and writes: the first column is the key under
-- rules.request_scale.figures, the others are places below it.
SELECT op || 's' AS side, count(*) AS "requests", sum(bytes) AS "bytes",
       at_share(list(bytes), 0.25) AS "size_bytes.p25",
       at_share(list(bytes), 0.5) AS "size_bytes.p50",
       at_share(list(bytes), 0.75) AS "size_bytes.p75",
       at_share(list(bytes), 0.99) AS "size_bytes.p99",
       max(bytes) AS "size_bytes.max",
       at_share(list(depth), 0.25) AS "outstanding.p25",
       at_share(list(depth), 0.5) AS "outstanding.p50",
       at_share(list(depth), 0.75) AS "outstanding.p75",
       at_share(list(depth), 0.99) AS "outstanding.p99",
       max(depth) AS "outstanding.max",
       at_share(list(depth_same), 0.25) AS "outstanding_of_its_kind.p25",
       at_share(list(depth_same), 0.5) AS "outstanding_of_its_kind.p50",
       at_share(list(depth_same), 0.75) AS "outstanding_of_its_kind.p75",
       at_share(list(depth_same), 0.99) AS "outstanding_of_its_kind.p99",
       max(depth_same) AS "outstanding_of_its_kind.max"
FROM outstanding WHERE op IN ('read', 'write') GROUP BY op ORDER BY op;
