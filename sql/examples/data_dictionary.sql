-- What do the columns of the ranking mean, and what units are they in?
SELECT *
FROM data_dictionary
WHERE name = 'cheapest_gpu_per_workload'
