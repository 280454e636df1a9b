-- history: covers the days from history_from to history_to
WITH _accepted AS (
    SELECT DISTINCT source, day
    FROM main.offers
    SEMI JOIN (SELECT source FROM main.sources WHERE kind = 'prices') USING (source)
),

_days AS (
    SELECT day
    FROM (SELECT DISTINCT day FROM _accepted UNION SELECT getvariable('as_of_day')::DATE)
    WHERE day BETWEEN coalesce(getvariable('history_from')::DATE, '-infinity')
        AND coalesce(getvariable('history_to')::DATE, getvariable('as_of_day')::DATE)
),

_in_force AS (
    SELECT d.day AS index_day, a.source, max(a.day) AS day
    FROM _days AS d
    JOIN _accepted AS a ON a.day <= d.day
    JOIN main.sources AS s ON s.source = a.source AND d.day - a.day <= s.stale_after_days
    GROUP BY ALL
),

_offered AS (
    SELECT f.index_day, o.source, o.gpu_id, o.price_kind, o.term_days, o.provider, o.usd_per_gpu_hour AS usd,
        coalesce(o.believed_on, o.day) AS day
    FROM _in_force AS f
    JOIN main.offers AS o ON o.source = f.source AND o.day = f.day
    JOIN main.sources AS s ON s.source = f.source
    WHERE o.match_status = 'matched' AND o.gpu_count = floor(o.gpu_count) AND o.usd_per_gpu_hour IS NOT NULL
        AND o.flag_reason IS NULL AND coalesce(o.available, TRUE)
        AND coalesce(o.effective_from <= f.index_day, TRUE)
        AND f.index_day - coalesce(o.believed_on, o.day) <= s.stale_after_days
),

-- Each source counts once, with its median, as in the comparison of prices with the market in offers_latest.
_middle AS (
    SELECT index_day, gpu_id, price_kind, median(usd) AS usd, count(*) AS sources
    FROM (
        SELECT index_day, gpu_id, price_kind, source, median(usd::DOUBLE) AS usd
        FROM _offered
        GROUP BY ALL
    )
    GROUP BY ALL
),

_providers AS (
    SELECT
        o.index_day, o.gpu_id, o.price_kind, o.term_days, o.provider,
        min(o.usd) AS usd,
        count(*) AS offers,
        min(o.day) AS oldest_day
    FROM _offered AS o
    JOIN _middle AS m USING (index_day, gpu_id, price_kind)
    JOIN cost_parameters_by_source() AS p ON p.source = o.source AND p.price_kind = o.price_kind
    WHERE m.sources <= p.parameters['market_least_sources']
        OR o.usd BETWEEN m.usd / p.parameters['market_below_factor']
            AND m.usd * p.parameters['market_above_factor']
    GROUP BY ALL
)

SELECT
    index_day AS day, gpu_id, price_kind, term_days,
    count(*) AS providers,
    sum(offers) AS offers,
    min(usd) AS minimum_usd_per_gpu_hour,
    quantile_cont(usd::DOUBLE, 0.25) AS lower_quartile_usd_per_gpu_hour,
    quantile_cont(usd::DOUBLE, 0.5) AS median_usd_per_gpu_hour,
    quantile_cont(usd::DOUBLE, 0.75) AS upper_quartile_usd_per_gpu_hour,
    max(usd) AS maximum_usd_per_gpu_hour,
    min(oldest_day) AS oldest_price_day
FROM _providers
GROUP BY ALL
ORDER BY day, gpu_id, price_kind, term_days
