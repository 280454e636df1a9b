SELECT
    workload, price_kind, gpu_id, gpu_count, node_count, provider, total_usd, hours, meets_deadline
FROM main.cost_hours_pareto
ORDER BY workload, price_kind, position
