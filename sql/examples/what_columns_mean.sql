-- What do the columns of the ranking mean, and in which units are they?
SELECT *
FROM data_dictionary
WHERE name = 'cheapest_gpu_per_workload'
