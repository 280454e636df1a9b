WITH _cheapest AS (
    SELECT
        gpu_id, price_kind,
        count(DISTINCT provider) AS providers,
        arg_min(
            {'usd': usd_per_gpu_hour, 'provider': provider, 'term_days': term_days},
            {'usd': usd_per_gpu_hour, 'provider': provider, 'term_days': coalesce(term_days, 0)}
        ) AS best
    FROM main.offers_latest
    WHERE ranked
    GROUP BY ALL
),

_prices AS (
    PIVOT _cheapest
    ON price_kind IN ('on_demand', 'flex_start', 'spot', 'reserved', 'serverless')
    USING any_value(best) AS best, any_value(providers) AS providers
    GROUP BY gpu_id
),

_providers AS (
    SELECT gpu_id, count(DISTINCT provider) AS providers
    FROM main.offers_latest
    WHERE ranked
    GROUP BY gpu_id
),

_reference AS (
    SELECT gpu_id, job AS workload, tokens_per_second
    FROM workload_plans()
    WHERE job = 'llama-3.1-8b-lora-100m' AND gpu_count = 1 AND verdict IN ('fits', 'tight')
)

SELECT
    g.gpu_id, g.vendor, g.architecture, g.model, g.form_factor, g.memory_gb, g.memory_type,
    g.usable_memory_gib,
    g.bandwidth_gb_s, g.bf16_dense_tflops, g.fp16_dense_tflops, g.fp8_dense_tflops, g.fp4_dense_tflops,
    g.fp32_tflops, g.gemm_bf16_measured_tflops, g.tdp_w, g.year, g.nvlink_gb_s, g.segment,
    p.on_demand_best.usd AS on_demand_usd_per_gpu_hour,
    p.on_demand_best.provider AS on_demand_provider,
    coalesce(p.on_demand_providers, 0) AS on_demand_providers,
    p.flex_start_best.usd AS flex_start_usd_per_gpu_hour,
    p.flex_start_best.provider AS flex_start_provider,
    p.spot_best.usd AS spot_usd_per_gpu_hour,
    p.spot_best.provider AS spot_provider,
    coalesce(p.spot_providers, 0) AS spot_providers,
    p.reserved_best.usd AS reserved_usd_per_gpu_hour,
    p.reserved_best.provider AS reserved_provider,
    p.reserved_best.term_days AS reserved_term_days,
    coalesce(p.reserved_providers, 0) AS reserved_providers,
    p.serverless_best.usd AS serverless_usd_per_gpu_hour,
    p.serverless_best.provider AS serverless_provider,
    coalesce(n.providers, 0) AS providers,
    p.on_demand_best.usd / g.memory_gb AS on_demand_usd_per_gb_hour,
    p.on_demand_best.usd / g.bf16_dense_tflops AS on_demand_usd_per_bf16_tflop_hour,
    r.workload AS reference_workload,
    r.tokens_per_second AS reference_tokens_per_second,
    r.tokens_per_second * 3600 / p.on_demand_best.usd AS reference_tokens_per_usd,
    getvariable('as_of_day')::DATE AS sheet_day
FROM main.gpus AS g
LEFT JOIN _prices AS p USING (gpu_id)
LEFT JOIN _providers AS n USING (gpu_id)
LEFT JOIN _reference AS r USING (gpu_id)
ORDER BY gpu_id
