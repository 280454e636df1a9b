-- What was the lowest on-demand cost of each scenario on each published day?
SELECT w.title, h.day, h.total_usd, h.hours,
    gpu_name(g.model, g.form_factor, g.memory_gb) AS gpu, h.gpu_count, h.provider
FROM ranking_history AS h
JOIN workloads AS w USING (workload)
JOIN gpus AS g USING (gpu_id)
WHERE w.scenario AND h.price_kind = 'on_demand' AND h.objective = 'cost' AND h.rank = 1
ORDER BY w.title, h.day
