-- history: covers the days from history_from onward
WITH _from AS (
    SELECT coalesce(getvariable('history_from')::DATE, '-infinity') AS day
),

-- The last price of each series before history_from, and the first day of that price.
_before AS (
    SELECT
        gpu_id, price_kind, term_days, source, provider, tier,
        max(day) AS day, arg_max(usd_per_gpu_hour, day) AS usd_per_gpu_hour,
        coalesce(max(changed), min(day)) AS since
    FROM (
        SELECT day, gpu_id, price_kind, term_days, source, provider, tier, usd_per_gpu_hour
        FROM main.price_history
        UNION ALL BY NAME
        SELECT day AS changed, gpu_id, price_kind, term_days, source, provider, tier
        FROM main.price_changes
    )
    WHERE coalesce(day, changed) < (SELECT f.day FROM _from AS f)
    GROUP BY ALL
),

_prices AS (
    FROM _before
    UNION ALL BY NAME
    SELECT day, gpu_id, price_kind, term_days, source, provider, tier, usd_per_gpu_hour
    FROM main.price_history
    WHERE day >= (SELECT f.day FROM _from AS f)
),

_steps AS (
    SELECT
        *,
        lag(usd_per_gpu_hour) OVER _series IS DISTINCT FROM usd_per_gpu_hour AS is_new,
        lag(usd_per_gpu_hour) OVER _series AS previous_usd_per_gpu_hour,
        lag(day) OVER _series AS previous_day
    FROM _prices
    WINDOW _series AS (PARTITION BY gpu_id, price_kind, term_days, source, provider, tier ORDER BY day)
),

_changes AS (
    SELECT
        *,
        lag(coalesce(since, day)) OVER _series AS previous_since,
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
