WITH _last AS (
    SELECT source, max(day) AS day
    FROM main.offers
    WHERE day <= getvariable('as_of_day')::DATE
    GROUP BY source
),

_aged AS (
    SELECT
        o.*,
        getvariable('as_of_day')::DATE - o.day AS age_days,
        getvariable('as_of_day')::DATE - o.day > s.stale_after_days AS stale
    FROM main.offers AS o
    SEMI JOIN _last USING (source, day)
    JOIN main.sources AS s USING (source)
),

_judged AS (
    SELECT
        *,
        CASE
            WHEN gpu_id IS NULL OR match_status <> 'matched' THEN 'gpu_not_settled'
            WHEN gpu_count <> floor(gpu_count) THEN 'gpu_slice'
            WHEN usd_per_hour IS NULL THEN 'no_exchange_rate'
            WHEN flag_reason IS NOT NULL THEN 'flagged'
            WHEN NOT coalesce(available, true) THEN 'not_available'
            WHEN effective_from > getvariable('as_of_day')::DATE THEN 'not_yet_in_effect'
            WHEN stale THEN 'stale'
        END AS not_ranked_reason
    FROM _aged
)

SELECT *, not_ranked_reason IS NULL AS ranked
FROM _judged
