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
    SELECT
        gpu_id,
        any_value(best) FILTER (price_kind = 'on_demand') AS on_demand,
        any_value(best) FILTER (price_kind = 'flex_start') AS flex_start,
        any_value(best) FILTER (price_kind = 'spot') AS spot,
        any_value(best) FILTER (price_kind = 'reserved') AS reserved,
        any_value(best) FILTER (price_kind = 'serverless') AS serverless,
        any_value(providers) FILTER (price_kind = 'on_demand') AS on_demand_providers,
        any_value(providers) FILTER (price_kind = 'spot') AS spot_providers,
        any_value(providers) FILTER (price_kind = 'reserved') AS reserved_providers
    FROM _cheapest
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
    p.on_demand.usd AS on_demand_usd_per_gpu_hour,
    p.on_demand.provider AS on_demand_provider,
    coalesce(p.on_demand_providers, 0) AS on_demand_providers,
    p.flex_start.usd AS flex_start_usd_per_gpu_hour,
    p.flex_start.provider AS flex_start_provider,
    p.spot.usd AS spot_usd_per_gpu_hour,
    p.spot.provider AS spot_provider,
    coalesce(p.spot_providers, 0) AS spot_providers,
    p.reserved.usd AS reserved_usd_per_gpu_hour,
    p.reserved.provider AS reserved_provider,
    p.reserved.term_days AS reserved_term_days,
    coalesce(p.reserved_providers, 0) AS reserved_providers,
    p.serverless.usd AS serverless_usd_per_gpu_hour,
    p.serverless.provider AS serverless_provider,
    coalesce(n.providers, 0) AS providers,
    p.on_demand.usd / g.memory_gb AS on_demand_usd_per_gb_hour,
    p.on_demand.usd / g.bf16_dense_tflops AS on_demand_usd_per_bf16_tflop_hour,
    r.workload AS reference_workload,
    r.tokens_per_second AS reference_tokens_per_second,
    r.tokens_per_second * 3600 / p.on_demand.usd AS reference_tokens_per_usd,
    getvariable('as_of_day')::DATE AS sheet_day
FROM main.gpus AS g
LEFT JOIN _prices AS p USING (gpu_id)
LEFT JOIN _providers AS n USING (gpu_id)
LEFT JOIN _reference AS r USING (gpu_id)
ORDER BY gpu_id
