WITH _by_count AS (
    SELECT
        p.*,
        p.verdict <> 'does_not_fit' AS fits,
        p.verdict = 'fits' AS is_ranked,
        r.gpu_id IS NOT NULL AS rented
    FROM main.plans AS p
    LEFT JOIN (
        SELECT DISTINCT gpu_id, gpu_count, node_count FROM main.rentals WHERE size_evidence <> 'assumed'
    ) AS r
        USING (gpu_id, gpu_count, node_count)
    WHERE p.gpu_count <= 8
),

_by_gpu AS (
    SELECT
        model, method, seq_len, lora_rank, gpu_id,
        bool_or(is_ranked AND rented) AS answered,
        bool_or(fits) AS fits,
        min(gpu_count) FILTER (is_ranked) AS fits_from_gpus,
        max(fit_probability) AS fit_probability,
        min(memory_gib) AS least_memory_gib,
        any_value(usable_memory_gib) AS usable_memory_gib,
        arg_max(usable_memory_gib - memory_margin_gib, gpu_count) AS needed_gib,
        arg_max(infeasible_reason, gpu_count) AS infeasible_reason
    FROM _by_count
    GROUP BY ALL
),

_judged AS (
    SELECT
        *,
        CASE
            WHEN NOT fits THEN 'does_not_fit'
            WHEN fits_from_gpus IS NULL THEN 'might_not_fit'
            WHEN gpu_id NOT IN (SELECT r.gpu_id FROM main.rentals AS r) THEN 'no_price'
            ELSE 'not_rented_in_that_number'
        END AS reason
    FROM _by_gpu
    WHERE NOT answered
)

SELECT * EXCLUDE (answered, fits) REPLACE (CASE WHEN NOT fits THEN infeasible_reason END AS infeasible_reason)
FROM _judged
ORDER BY model, method, seq_len, lora_rank, gpu_id
