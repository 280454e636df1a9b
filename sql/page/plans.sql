-- The plans that rank, on machines that are rented out: one row per recipe (a row of recipes.sql) and
-- machine (gpu_id, gpu_count, node_count). Bands of speed have four decimals (see model_bands).
SELECT
    p.model, p.method, p.seq_len, p.lora_rank, p.gpu_id, p.gpu_count, p.node_count, p.tokens_per_second,
    round(p.tokens_per_second_low / p.tokens_per_second, 6) AS low,
    round(p.tokens_per_second_high / p.tokens_per_second, 6) AS high,
    p.evidence, p.fit_probability, p.fit_probability < d.p['safest_fit_probability'] AS is_tight,
    p.training_state_gib, p.micro_batch, p.checkpointing, p.sharding
FROM grid_plans() AS p
CROSS JOIN default_parameters() AS d
CROSS JOIN plan_defaults() AS s
WHERE p.fit_probability >= s.min_fit_probability AND p.tokens_per_second > 0
    AND EXISTS (
        FROM main.rentals AS r
        WHERE r.gpu_id = p.gpu_id AND r.gpu_count = p.gpu_count AND r.node_count = p.node_count
            AND coalesce(r.node_network_gbps, 0) >= coalesce(p.node_network_gbps, 0)
    )
