SELECT job, rank, source, gpu_id, total_usd, hours, on_demand_usd, pick, cautions
FROM cheapest_published('jobs')
