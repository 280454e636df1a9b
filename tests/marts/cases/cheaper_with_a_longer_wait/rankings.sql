SELECT *
FROM main.cheapest_gpu_per_workload
WHERE workload = 'job' OR (rank = 1 AND objective = 'cost')
