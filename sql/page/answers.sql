-- The first rows of each ranking in report_ranked, and its picks, with the costs at all speeds from
-- report_costs, and the picks' cautions.
WITH _bands AS (
    SELECT
        candidate,
        max(total_usd) FILTER (speed = 'high') AS total_usd_low,
        max(total_usd) FILTER (speed = 'low') AS total_usd_high,
        max(hours) FILTER (speed = 'low') AS hours_high
    FROM report_costs
    GROUP BY candidate
)

SELECT
    k.job, k.kind, k.rank, k.pick, c.gpu_id, c.gpu_count, c.node_count, c.offer,
    c.total_usd, c.fit_probability, b.total_usd_low, b.total_usd_high, c.hours, b.hours_high,
    k.max_hours, k.meets_deadline,
    k.longer_wait.usd AS longer_wait_usd, k.longer_wait.hours AS longer_wait_hours,
    way_as_json(k.longer_wait) AS longer_wait_way, k.on_demand_usd, k.safest_usd, c.interruptions,
    CASE WHEN k.pick IS NOT NULL THEN cautions_of(
        r.renter_notice, r.size_evidence, r.doubt, c.tier_class, c.is_private_host, c.node_count,
        c.has_slow_links, c.has_young_kernels, c.is_other_platform, c.is_extrapolated, c.fit_probability,
        c.hours, c.total_usd, c.interruptions, k.max_hours, k.keeps_deadline, k.has_short_term,
        k.on_demand_usd, d.p
    ) END AS cautions
FROM report_ranked AS k
JOIN report_costs AS c ON c.candidate = k.candidate AND c.speed = 'middle'
JOIN _bands AS b ON b.candidate = k.candidate
JOIN main.rentals AS r ON r.rowid = c.offer
CROSS JOIN default_parameters() AS d
WHERE k.rank <= getvariable('report_rows') OR k.pick IS NOT NULL
ORDER BY k.job, k.kind, k.rank
