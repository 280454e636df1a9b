WITH _plans AS (
    SELECT
        p.*, g.memory_gb,
        -- Offloading weights to host memory is a fallback and does not meet the requirement.
        p.verdict <> 'does_not_fit' AND coalesce(p.offload, '') = '' AS fits
    FROM main.plans AS p
    JOIN main.gpus AS g USING (gpu_id)
    -- A family's id is for labels that leave the exact card open; it is not a card to recommend.
    WHERE p.node_count = 1 AND p.gpu_count <= 8 AND g.derived_from IS NULL
        -- Only cards that some source has offered are worth naming.
        AND p.gpu_id IN (
            SELECT gpu_id FROM main.offers WHERE source <> 'imported'
            UNION ALL
            SELECT name FROM history.first_seen WHERE kind = 'gpu'
        )
),

_needs AS (
    SELECT
        model, method, seq_len, lora_rank,
        arg_min(
            {
                'mid': memory_gib, 'low': memory_gib_low, 'high': memory_gib_high,
                'settings': to_json(struct_pack(
                    micro_batch, checkpointing, optimizer, training_precision, quantization, stack
                ))
            },
            {'gib': memory_gib, 'gpu': gpu_id}
        ) FILTER (gpu_count = 1) AS least,
        arg_min(
            {'gpu': gpu_id, 'gb': memory_gb, 'fit_probability': fit_probability},
            {'gb': memory_gb, 'unlikelier': -fit_probability, 'gpu': gpu_id}
        ) FILTER (gpu_count = 1 AND fits) AS smallest,
        arg_min(
            {'gpu': gpu_id, 'gb': memory_gb},
            {'gb': memory_gb, 'slower': -tokens_per_second, 'gpu': gpu_id}
        ) FILTER (gpu_count = 1 AND fits AND verdict = 'fits') AS roomy,
        arg_min(
            {'gpu': gpu_id, 'n': gpu_count},
            {'n': gpu_count, 'gb': memory_gb, 'slower': -tokens_per_second, 'gpu': gpu_id}
        ) FILTER (fits) AS fewest,
        min(gpu_count) FILTER (fits AND gpu_id = 'a100-sxm-80gb') AS fewest_a100_80gb,
        min(gpu_count) FILTER (fits AND gpu_id = 'h100-sxm-80gb') AS fewest_h100_80gb,
        min(gpu_count) FILTER (fits AND gpu_id = 'h200-sxm-141gb') AS fewest_h200_141gb,
        min(gpu_count) FILTER (fits AND gpu_id = 'rtx-4090') AS fewest_rtx_4090
    FROM _plans
    GROUP BY ALL
)

SELECT
    n.model, n.method, n.seq_len, n.lora_rank,
    m.params_total / 1e9 AS params_billion,
    n.least.mid AS least_memory_gib,
    n.least.low AS least_memory_gib_low,
    n.least.high AS least_memory_gib_high,
    n.least.settings AS settings,
    n.smallest.gpu AS minimum_gpu_id,
    n.smallest.gb AS minimum_memory_gb,
    n.smallest.fit_probability AS minimum_fit_probability,
    n.roomy.gpu AS recommended_gpu_id,
    n.roomy.gb AS recommended_memory_gb,
    n.fewest.n AS fewest_gpus,
    n.fewest.gpu AS fewest_gpus_gpu_id,
    n.fewest_a100_80gb, n.fewest_h100_80gb, n.fewest_h200_141gb, n.fewest_rtx_4090
FROM _needs AS n
JOIN main.models AS m USING (model)
ORDER BY params_billion, model, method, seq_len, lora_rank
