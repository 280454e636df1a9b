WITH _by_count AS (
    SELECT
        p.*,
        p.verdict <> 'does_not_fit' AS fits,
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
        bool_or(fits AND rented) AS answered,
        min(gpu_count) FILTER (fits) AS fits_from_gpus,
        min(memory_gib) AS least_memory_gib,
        any_value(usable_memory_gib) AS usable_memory_gib,
        arg_max(infeasible_reason, gpu_count) AS infeasible_reason
    FROM _by_count
    GROUP BY ALL
),

_priced AS (
    SELECT DISTINCT gpu_id FROM main.rentals
),

_judged AS (
    SELECT
        g.*,
        CASE
            WHEN fits_from_gpus IS NULL THEN 'does_not_fit'
            WHEN p.gpu_id IS NULL THEN 'no_price'
            ELSE 'not_rented_in_that_number'
        END AS reason
    FROM _by_gpu AS g
    LEFT JOIN _priced AS p USING (gpu_id)
    WHERE NOT answered
)

SELECT
    model, method, seq_len, lora_rank, gpu_id, reason, fits_from_gpus, least_memory_gib, usable_memory_gib,
    CASE reason
        WHEN 'does_not_fit' THEN infeasible_reason
        WHEN 'no_price' THEN 'fits on ' || fits_from_gpus
            || ' or more, but no source has a ranked price for it'
        ELSE 'fits on ' || fits_from_gpus
            || ' or more, but no source is known to rent that many on one machine'
    END AS detail
FROM _judged
ORDER BY model, method, seq_len, lora_rank, gpu_id
