-- Where each recipe of recipes.sql fits: per GPU, the fewest cards on which it ranks, or else its highest
-- P(fits).
-- A GPU without a row has too little memory in every number that is planned.
SELECT
    p.model, p.method, p.seq_len, p.lora_rank, p.gpu_id,
    min(p.gpu_count) FILTER (p.fit_probability >= d.min_fit_probability) AS fits_from_gpus,
    max(p.fit_probability) AS fit_probability
FROM grid_plans() AS p
CROSS JOIN plan_defaults() AS d
GROUP BY ALL
