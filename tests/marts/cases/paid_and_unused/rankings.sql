SELECT workload, price_kind, rank, pick, source, tier, gpu_count, gpus_billed, hours, share_used, total_usd, on_demand_usd, cautions
FROM main.cheapest_gpu_per_workload
WHERE objective = 'cost'
