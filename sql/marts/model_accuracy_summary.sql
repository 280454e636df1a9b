WITH _groups AS (
    SELECT quantity, unnest([
        {'grouped_by': 'all', 'group': 'all'}, {'grouped_by': 'source', 'group': source},
        {'grouped_by': 'method', 'group': method}, {'grouped_by': 'gpu', 'group': gpu_id},
        {'grouped_by': 'model size', 'group': model_size}, {'grouped_by': 'stack', 'group': stack},
        {'grouped_by': 'evidence', 'group': evidence_held_out}
    ], recursive := TRUE), * EXCLUDE (quantity)
    FROM main.model_accuracy
)

SELECT
    quantity, grouped_by, "group",
    count(measured) AS runs,
    median(abs(error)) AS median_error, avg(abs(error)) AS mean_error,
    median(abs(error_held_out)) AS median_error_held_out, avg(abs(error_held_out)) AS mean_error_held_out,
    median(error_held_out) AS bias_held_out,
    median(abs(error_split)) AS median_error_split, avg(abs(error_split)) AS mean_error_split,
    avg(in_band::INTEGER) AS share_in_band,
    count(*) FILTER (ran_out_of_memory) AS died,
    count(*) FILTER (ran_out_of_memory AND NOT predicted_to_fit) AS died_as_predicted,
    count(*) FILTER (NOT ran_out_of_memory) AS ran,
    count(*) FILTER (NOT ran_out_of_memory AND predicted_to_fit) AS ran_as_predicted,
    (died_as_predicted / nullif(died, 0) + ran_as_predicted / nullif(ran, 0)) / 2 AS balanced_accuracy
FROM _groups
GROUP BY quantity, grouped_by, "group"
ORDER BY quantity, grouped_by, "group"
