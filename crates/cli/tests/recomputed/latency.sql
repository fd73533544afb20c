-- Latencies by operation: the first column is the key under result.latency_ns.
SELECT op, count(*) AS count, avg(CAST(latency_ns AS DOUBLE)) AS mean,
       at_share(list(latency_ns), 0.5) AS p50, at_share(list(latency_ns), 0.95) AS p95,
       at_share(list(latency_ns), 0.99) AS p99, at_share(list(latency_ns), 0.999) AS p999,
       max(latency_ns) AS max
FROM replayed GROUP BY op ORDER BY op;
