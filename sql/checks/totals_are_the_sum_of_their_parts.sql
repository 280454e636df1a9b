-- fail: a total is not the sum of its parts, or a part is negative
SELECT workload, price_kind, objective, rank, total_usd, compute_usd, interruption_usd, failure_usd,
    storage_usd, egress_usd
FROM main.cheapest_gpu_per_workload
WHERE total_usd <> compute_usd + interruption_usd + failure_usd + storage_usd + egress_usd
    OR least(compute_usd, interruption_usd, failure_usd, storage_usd, egress_usd) < 0
    OR total_usd_low > total_usd_high
    OR billed_hours < setup_hours + train_hours + evaluation_hours - 1e-6
