SELECT job, rank, gpu_id, total_usd, hours, pick, cautions
FROM cheapest_published('jobs')
