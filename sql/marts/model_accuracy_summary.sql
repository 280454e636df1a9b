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
    -- Rounded to nine digits, because the last digits of a sum depend on the order of its terms.
    SELECT
        quantity, grouped_by, "group", count(*) AS sources,
        round(avg(median_error), 9) AS stranger_median_error, round(avg(mean_error), 9) AS stranger_mean_error
    FROM _by_source
    GROUP BY ALL
),

_stranger_bands AS (
    SELECT quantity, grouped_by, "group", count(*) AS families,
        round(avg(share_in_band), 9) AS stranger_share_in_band
    FROM _by_family
    GROUP BY ALL
),

_totals AS (
    SELECT
        quantity, grouped_by, "group",
        count(measured) AS runs,
        median(abs(error)) AS median_error, avg(abs(error)) AS mean_error,
        median(abs(error_held_out)) AS median_error_held_out,
        avg(abs(error_held_out)) AS mean_error_held_out,
        median(error_held_out) AS bias_held_out,
        avg(in_band::INTEGER) AS share_in_band,
        count(*) FILTER (ran_out_of_memory) AS died,
        count(*) FILTER (ran_out_of_memory AND NOT predicted_to_fit) AS died_as_predicted,
        count(*) FILTER (NOT ran_out_of_memory) AS ran,
        count(*) FILTER (NOT ran_out_of_memory AND predicted_to_fit) AS ran_as_predicted,
        (died_as_predicted / nullif(died, 0) + ran_as_predicted / nullif(ran, 0)) / 2 AS balanced_accuracy
    FROM _groups
    GROUP BY quantity, grouped_by, "group"
)

SELECT
    t.quantity, t.grouped_by, t."group", t.runs, s.sources, b.families,
    s.stranger_median_error, s.stranger_mean_error, b.stranger_share_in_band,
    t.* EXCLUDE (quantity, grouped_by, "group", runs)
FROM _totals AS t
LEFT JOIN _strangers AS s
    ON s.quantity = t.quantity AND s.grouped_by = t.grouped_by AND s."group" IS NOT DISTINCT FROM t."group"
LEFT JOIN _stranger_bands AS b
    ON b.quantity = t.quantity AND b.grouped_by = t.grouped_by AND b."group" IS NOT DISTINCT FROM t."group"
ORDER BY t.quantity, t.grouped_by, t."group"
