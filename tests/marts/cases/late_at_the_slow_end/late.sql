SELECT job, rank, source, gpu_id, gpu_count, total_usd, hours, hours_high, keeps_deadline, cautions, pick
FROM cheapest_published('jobs')
