WITH _reserved AS (
    SELECT *
    FROM main.offers_latest
    WHERE ranked AND price_kind = 'reserved'
    QUALIFY row_number() OVER (
        PARTITION BY gpu_id, source, provider, tier, term_days
        ORDER BY usd_per_gpu_hour, gpu_count, region NULLS LAST, instance_type NULLS LAST, raw_label
    ) = 1
),

_on_demand AS (
    SELECT gpu_id, source, min(usd_per_gpu_hour) AS usd
    FROM main.offers_latest
    WHERE ranked AND price_kind = 'on_demand'
    GROUP BY ALL
),

_market AS (
    SELECT gpu_id, min(usd) AS usd
    FROM _on_demand
    GROUP BY ALL
)

SELECT
    r.gpu_id, r.source, r.provider, r.tier, r.term_days,
    r.gpu_count AS gpus_per_offer,
    r.usd_per_gpu_hour AS reserved_usd_per_gpu_hour,
    (r.term_days * 24 * r.usd_per_hour)::DECIMAL(18, 4) AS commitment_usd,
    d.usd AS on_demand_usd_per_gpu_hour,
    1 - r.usd_per_gpu_hour / d.usd AS saving_share,
    h.p['hours_per_month'] * r.usd_per_gpu_hour / d.usd AS break_even_hours_per_month,
    m.usd AS market_on_demand_usd_per_gpu_hour,
    h.p['hours_per_month'] * r.usd_per_gpu_hour / m.usd AS market_break_even_hours_per_month
FROM _reserved AS r
CROSS JOIN default_parameters() AS h
LEFT JOIN _on_demand AS d ON d.gpu_id = r.gpu_id AND d.source = r.source
LEFT JOIN _market AS m ON m.gpu_id = r.gpu_id
ORDER BY r.gpu_id, r.source, r.tier, r.term_days, r.provider
