-- The first rows of each ranking in report_ranked, and its picks, with the costs at all speeds from
-- report_costs.
WITH _bands AS (
    SELECT
        candidate,
        max(total_usd) FILTER (speed = 'middle') AS total_usd,
        max(total_usd) FILTER (speed = 'high') AS total_usd_low,
        max(total_usd) FILTER (speed = 'low') AS total_usd_high,
        max(hours) FILTER (speed = 'middle') AS hours
    FROM report_costs
    GROUP BY candidate
)

SELECT
    r.job, r.kind, r.rank, r.pick, c.gpu_id, c.gpu_count, c.node_count, c.offer,
    b.total_usd, b.total_usd_low, b.total_usd_high, b.hours, r.meets_deadline,
    r.longer_wait.usd AS longer_wait_usd, r.longer_wait.hours AS longer_wait_hours,
    longer_wait_way(r.longer_wait) AS longer_wait_way
FROM report_ranked AS r
JOIN report_candidates AS c USING (candidate)
JOIN _bands AS b USING (candidate)
WHERE r.rank <= getvariable('report_rows') OR r.pick IS NOT NULL
ORDER BY r.job, r.kind, r.rank
