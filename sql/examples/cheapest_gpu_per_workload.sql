-- What does each well-known scenario cost on demand today, and which GPU is cheapest for it?
SELECT
    w.title, c.gpu, c.gpu_count, c.provider, c.total_usd, c.hours, c.max_hours, c.meets_deadline,
    c.longer_wait_usd, c.longer_wait_hours, c.fit_probability, c.price_day
FROM cheapest_gpu_per_workload AS c
JOIN workloads AS w USING (workload)
WHERE w.scenario AND c.price_kind = 'on_demand' AND c.objective = 'cost' AND c.rank = 1
    AND c.day = (SELECT as_of_day FROM publication)
ORDER BY c.total_usd
