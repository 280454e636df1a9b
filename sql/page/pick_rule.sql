SELECT description AS pick_rule
FROM main.data_dictionary
WHERE name = 'cheapest_gpu_per_workload' AND column_name = 'pick'
