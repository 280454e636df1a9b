WITH _steps AS (
    SELECT
        *,
        lag(usd_per_gpu_hour) OVER _series IS DISTINCT FROM usd_per_gpu_hour AS is_new,
        lag(usd_per_gpu_hour) OVER _series AS previous_usd_per_gpu_hour,
        lag(day) OVER _series AS previous_day
    FROM main.price_history
    WINDOW _series AS (PARTITION BY gpu_id, price_kind, term_days, source, provider, tier ORDER BY day)
),

_changes AS (
    SELECT
        *,
        lag(day) OVER _series AS previous_since,
        lead(day) OVER _series IS NULL AS current
    FROM _steps
    WHERE is_new
    WINDOW _series AS (PARTITION BY gpu_id, price_kind, term_days, source, provider, tier ORDER BY day)
)

SELECT
    day, gpu_id, price_kind, term_days, source, provider, tier,
    usd_per_gpu_hour, previous_usd_per_gpu_hour,
    usd_per_gpu_hour - previous_usd_per_gpu_hour AS change_usd,
    usd_per_gpu_hour / previous_usd_per_gpu_hour - 1 AS change_share,
    previous_day, previous_since, current
FROM _changes
WHERE previous_usd_per_gpu_hour IS NOT NULL
ORDER BY day DESC, gpu_id, price_kind, source, tier, term_days, provider
