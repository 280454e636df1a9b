WITH _last AS (
    SELECT source, max(day) AS day
    FROM main.offers
    WHERE day <= getvariable('as_of_day')::DATE
    GROUP BY source
),

_aged AS (
    SELECT
        o.*,
        s.provider AS source_provider,
        p.parameters AS p,
        -- SXM and OAM cards come on whole boards: a larger offer is a multiple of them.
        coalesce(
            g.form_factor IN ('SXM', 'OAM') AND o.gpu_count > g.max_gpus_per_node
                AND o.gpu_count % g.max_gpus_per_node <> 0,
            FALSE
        ) AS impossible_machine,
        getvariable('as_of_day')::DATE - o.day > s.stale_after_days AS stale
    FROM main.offers AS o
    SEMI JOIN _last USING (source, day)
    JOIN main.sources AS s USING (source)
    JOIN cost_parameters_by_source() AS p USING (source, price_kind)
    LEFT JOIN main.gpus AS g USING (gpu_id)
),

_read_directly AS (
    SELECT DISTINCT provider
    FROM _aged
    WHERE provider = source_provider AND NOT stale
),

_alone AS (
    SELECT
        *,
        CASE
            WHEN gpu_id IS NULL OR match_status <> 'matched' THEN 'gpu_not_settled'
            WHEN gpu_count <> floor(gpu_count) THEN 'gpu_slice'
            WHEN impossible_machine THEN 'impossible_machine'
            WHEN usd_per_hour IS NULL THEN 'no_exchange_rate'
            WHEN flag_reason IS NOT NULL THEN 'flagged'
            WHEN NOT coalesce(available, TRUE) THEN 'not_available'
            WHEN effective_from > getvariable('as_of_day')::DATE THEN 'not_yet_in_effect'
            WHEN stale THEN 'stale'
            WHEN provider <> source_provider AND provider IN (FROM _read_directly)
                THEN 'listed_by_its_provider'
        END AS own_reason
    FROM _aged
),

-- The price of a GPU at each source: its median, so that a source with many offers counts no more than one
-- with few.
_asked AS (
    SELECT source, gpu_id, price_kind, median(usd_per_gpu_hour::DOUBLE) AS usd_per_gpu_hour
    FROM _alone
    WHERE coalesce(own_reason, 'not_available') = 'not_available'
    GROUP BY ALL
),

_elsewhere AS (
    SELECT a.source, a.gpu_id, a.price_kind, count(*) AS sources,
        median(b.usd_per_gpu_hour) AS usd_per_gpu_hour
    FROM _asked AS a
    JOIN _asked AS b ON b.gpu_id = a.gpu_id AND b.price_kind = a.price_kind AND b.source <> a.source
    GROUP BY ALL
),

_compared AS (
    SELECT
        a.*,
        CASE WHEN e.sources >= p['market_least_sources'] THEN
            a.usd_per_gpu_hour > p['market_above_factor'] * e.usd_per_gpu_hour
            OR a.usd_per_gpu_hour * p['market_below_factor'] < e.usd_per_gpu_hour
        END AS far
    FROM _alone AS a
    LEFT JOIN _elsewhere AS e
        ON e.source = a.source AND e.gpu_id = a.gpu_id AND e.price_kind = a.price_kind
            AND a.own_reason IS NULL
),

-- A source with many prices far off was misread: its prices that cannot be compared are not trusted either.
_misread AS (
    SELECT source
    FROM _compared
    GROUP BY source
    HAVING count(*) FILTER (far) > greatest(1, count(far) * any_value(p['market_misread_share']))
),

_judged AS (
    SELECT
        *,
        CASE
            WHEN own_reason IS NOT NULL THEN own_reason
            WHEN far THEN 'price_outlier'
            WHEN source IN (FROM _misread) THEN 'source_far_from_market'
        END AS not_ranked_reason
    FROM _compared
)

SELECT * EXCLUDE (source_provider, p, impossible_machine, own_reason, far),
    not_ranked_reason IS NULL AS ranked
FROM _judged
