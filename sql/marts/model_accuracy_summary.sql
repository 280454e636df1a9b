WITH _groups AS (
    SELECT quantity, unnest([
        {'grouped_by': 'all', 'group': 'all'}, {'grouped_by': 'family', 'group': family},
        {'grouped_by': 'source', 'group': source},
        {'grouped_by': 'method', 'group': method}, {'grouped_by': 'gpu', 'group': gpu_id},
        {'grouped_by': 'model size', 'group': model_size}, {'grouped_by': 'stack', 'group': stack},
        {'grouped_by': 'evidence', 'group': evidence_held_out}
    ], recursive := TRUE), * EXCLUDE (quantity)
    FROM main.model_accuracy
),

_by_source AS (
    SELECT
        quantity, grouped_by, "group", family,
        median(abs(error_held_out)) AS median_error, avg(abs(error_held_out)) AS mean_error
    FROM _groups
    WHERE measured IS NOT NULL
    GROUP BY quantity, grouped_by, "group", family, source
),

_by_family AS (
    SELECT quantity, grouped_by, "group", avg(in_band::INTEGER) AS share_in_band
    FROM _groups
    WHERE measured IS NOT NULL
    GROUP BY quantity, grouped_by, "group", family
),

_strangers AS (
    SELECT
        quantity, grouped_by, "group", count(*) AS sources,
        avg(median_error) AS stranger_median_error, avg(mean_error) AS stranger_mean_error
    FROM _by_source
    GROUP BY ALL
),

_stranger_bands AS (
    SELECT quantity, grouped_by, "group", count(*) AS families, avg(share_in_band) AS stranger_share_in_band
    FROM _by_family
    GROUP BY ALL
)

SELECT
    g.quantity, g.grouped_by, g."group",
    count(g.measured) AS runs, any_value(s.sources) AS sources, any_value(b.families) AS families,
    any_value(s.stranger_median_error) AS stranger_median_error,
    any_value(s.stranger_mean_error) AS stranger_mean_error,
    any_value(b.stranger_share_in_band) AS stranger_share_in_band,
    median(abs(g.error)) AS median_error, avg(abs(g.error)) AS mean_error,
    median(abs(g.error_held_out)) AS median_error_held_out, avg(abs(g.error_held_out)) AS mean_error_held_out,
    median(g.error_held_out) AS bias_held_out,
    median(abs(g.error_split)) AS median_error_split, avg(abs(g.error_split)) AS mean_error_split,
    avg(g.in_band::INTEGER) AS share_in_band,
    count(*) FILTER (g.ran_out_of_memory) AS died,
    count(*) FILTER (g.ran_out_of_memory AND NOT g.predicted_to_fit) AS died_as_predicted,
    count(*) FILTER (NOT g.ran_out_of_memory) AS ran,
    count(*) FILTER (NOT g.ran_out_of_memory AND g.predicted_to_fit) AS ran_as_predicted,
    (died_as_predicted / nullif(died, 0) + ran_as_predicted / nullif(ran, 0)) / 2 AS balanced_accuracy
FROM _groups AS g
LEFT JOIN _strangers AS s
    ON s.quantity = g.quantity AND s.grouped_by = g.grouped_by AND s."group" IS NOT DISTINCT FROM g."group"
LEFT JOIN _stranger_bands AS b
    ON b.quantity = g.quantity AND b.grouped_by = g.grouped_by AND b."group" IS NOT DISTINCT FROM g."group"
GROUP BY g.quantity, g.grouped_by, g."group"
ORDER BY g.quantity, g.grouped_by, g."group"
