SELECT job, rank, source, gpu_id, gpu_count, total_usd, hours, pick, ties_with_first, safest_usd, cautions
FROM cheapest_published('jobs')
