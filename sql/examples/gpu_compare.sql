-- Which GPUs train the most tokens per dollar on the reference job?
SELECT gpu_id, memory_gb, on_demand_usd_per_gpu_hour, on_demand_provider, providers,
    reference_tokens_per_second, reference_tokens_per_usd
FROM gpu_compare
WHERE reference_tokens_per_usd IS NOT NULL
ORDER BY reference_tokens_per_usd DESC
LIMIT 10
