-- The rankings of the newest day; the rankings of earlier days are loaded from the record.
SELECT
    r.day, r.workload, r.price_kind, r.objective, r.rank, r.gpu_id, r.gpu_count, r.node_count,
    r.source, r.provider, r.tier, r.term_days, r.total_usd, r.hours
FROM main.cheapest_gpu_per_workload AS r
JOIN main.workloads AS w USING (workload)
WHERE is_kept_ranking(w.scenario, r.price_kind, r.objective, r.rank)
ORDER BY r.workload, r.price_kind, r.objective, r.rank
