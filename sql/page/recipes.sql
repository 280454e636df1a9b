-- The combinations of model, method, sequence length and rank whose plans the file contains, all other
-- settings left open, with the sizes that do not depend on the machine (null if the recipe fits nowhere).
WITH _page_recipes AS (
    SELECT model, method, seq_len, lora_rank
    FROM grid_jobs()
    WHERE model IN (SELECT g.model FROM main.plan_grid AS g)
    UNION
    SELECT model, method, seq_len, lora_rank
    FROM main.plans
)

SELECT
    r.model, r.method, r.seq_len, r.lora_rank, any_value(p.result_gib) AS result_gib,
    any_value(CASE WHEN r.method = 'pretrain' THEN 0 ELSE p.model_download_gib END) AS download_gib,
    any_value(host_weights_gib(
        CASE WHEN r.method = 'pretrain' THEN 0 ELSE p.model_download_gib END,
        loaded_quantization(p.stack, m.experts, p.quantization)
    )) AS host_weights_gib
FROM _page_recipes AS r
JOIN main.models AS m USING (model)
LEFT JOIN grid_plans() AS p
    ON p.model = r.model AND p.method = r.method AND p.seq_len = r.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM r.lora_rank
GROUP BY r.model, r.method, r.seq_len, r.lora_rank
ORDER BY any_value(m.params_total), r.model, r.method, r.lora_rank, r.seq_len
