-- The best answer for each GPU in each ranking.
SELECT
    r.job, r.kind, c.gpu_id, min(r.rank) AS rank,
    arg_min(c.gpu_count, r.rank) AS gpu_count, arg_min(c.node_count, r.rank) AS node_count,
    arg_min(r.total_usd, r.rank) AS total_usd, arg_min(r.hours, r.rank) AS hours
FROM report_ranked AS r
JOIN report_candidates AS c USING (candidate)
GROUP BY r.job, r.kind, c.gpu_id
ORDER BY r.job, r.kind, rank
