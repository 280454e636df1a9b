-- Which well-known scenarios are priced every day, and how large is each job?
SELECT workload, title, model, method, tokens, seq_len, max_gpus, max_hours
FROM workloads
WHERE scenario
ORDER BY tokens, workload
