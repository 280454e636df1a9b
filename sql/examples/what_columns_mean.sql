-- What do the columns of the ranking mean, in which units?
SELECT *
FROM data_dictionary
WHERE name = 'cheapest_gpu_per_workload'
