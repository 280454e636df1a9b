WITH _last AS (
    SELECT source, max(day) AS day
    FROM main.offers
    -- Imported prices are from the past, and are no longer on offer.
    WHERE day <= getvariable('as_of_day')::DATE
        AND source IN (SELECT s.source FROM main.sources AS s WHERE s.kind = 'prices')
    GROUP BY source
),

_newest AS (
    SELECT * FROM main.offers SEMI JOIN _last USING (source, day)
),

-- The sources whose newest reading was refused for its prices.
_refused AS (
    SELECT source, max(day) AS day
    FROM main.capture_outcomes
    WHERE day <= getvariable('as_of_day')::DATE
    GROUP BY source
    HAVING arg_max(result, (day, attempt)) = 'doubted'
),

_sizes AS (
    SELECT * FROM catalogued_sizes('_newest')
),

_aged AS (
    SELECT
        o.* REPLACE (
            CASE
                WHEN o.size_evidence = 'offered' THEN 'offered'
                WHEN z.size IS NOT NULL THEN 'catalogued'
                ELSE 'assumed'
            END AS size_evidence,
            CASE WHEN f.day > o.day THEN 'reading_refused' ELSE o.doubt END AS doubt
        ),
        coalesce(z.size.network_attached, FALSE) AS network_attached,
        s.provider AS source_provider,
        s.serverless_training,
        p.parameters AS p,
        -- SXM and OAM cards come on whole boards, so a larger offer must consist of whole boards.
        coalesce(
            g.form_factor IN ('SXM', 'OAM') AND o.gpu_count > g.max_gpus_per_node
                AND o.gpu_count % g.max_gpus_per_node <> 0,
            FALSE
        ) AS impossible_machine,
        o.tier_class = 'marketplace' AS marketplace,
        getvariable('as_of_day')::DATE - coalesce(o.believed_on, o.day) > s.stale_after_days AS stale
    FROM _newest AS o
    JOIN main.sources AS s USING (source)
    JOIN cost_parameters_by_source() AS p USING (source, price_kind)
    LEFT JOIN main.gpus AS g USING (gpu_id)
    LEFT JOIN _refused AS f USING (source)
    LEFT JOIN _sizes AS z
        ON z.source = o.source AND z.gpu_id IS NOT DISTINCT FROM o.gpu_id
        AND z.tier IS NOT DISTINCT FROM o.tier
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
            WHEN network_attached THEN 'network_attached'
            WHEN usd_per_hour IS NULL THEN 'no_exchange_rate'
            WHEN flag_reason IS NOT NULL THEN 'flagged'
            WHEN NOT coalesce(available, TRUE) THEN 'not_available'
            WHEN effective_from > getvariable('as_of_day')::DATE THEN 'not_yet_in_effect'
            WHEN stale THEN 'stale'
            -- The total price of a commitment without a stated term is unknown.
            WHEN price_kind = 'reserved' AND term_days IS NULL THEN 'no_term'
            WHEN reliability < p['least_reliability'] THEN 'unreliable_host'
            WHEN ram_gib < p['least_host_ram_gib_per_gpu'] * gpu_count THEN 'host_too_small'
            WHEN provider <> source_provider AND provider IN (FROM _read_directly)
                THEN 'listed_by_its_provider'
            WHEN tier_class = 'serverless' AND serverless_training IS NOT TRUE THEN 'inference_only'
        END AS own_reason
    FROM _aged
),

-- The price of a GPU at each source is the source's median, so that a source with many offers counts no more
-- than a source with few.
_asked AS (
    SELECT
        source, gpu_id, price_kind,
        median(usd_per_gpu_hour::DOUBLE) AS usd_per_gpu_hour,
        bool_and(marketplace) AS marketplace
    FROM _alone
    -- Inference-only prices are compared only with serverless prices.
    WHERE coalesce(own_reason, 'not_available') = 'not_available'
        OR (own_reason = 'inference_only' AND price_kind = 'serverless')
    GROUP BY ALL
),

-- On a marketplace, each host sets its own price: the prices of marketplaces are compared with the market,
-- but are not part of the market.
_elsewhere AS (
    SELECT
        a.source, a.gpu_id, a.price_kind,
        count(*) AS sources,
        median(b.usd_per_gpu_hour) AS usd_per_gpu_hour,
        min(b.usd_per_gpu_hour) AS lowest,
        max(b.usd_per_gpu_hour) AS highest,
        any_value(a.usd_per_gpu_hour) / median(b.usd_per_gpu_hour) AS level
    FROM _asked AS a
    JOIN _asked AS b
        ON b.gpu_id = a.gpu_id AND b.price_kind = a.price_kind AND b.source <> a.source AND NOT b.marketplace
    JOIN cost_parameters_by_source() AS p ON p.source = a.source AND p.price_kind = a.price_kind
    GROUP BY ALL
    HAVING count(*) >= any_value(p.parameters['market_least_sources'])
),

-- A source's price level: the median, over its other GPUs, of the ratio of its price to the market price.
_levels AS (
    SELECT a.source, a.gpu_id, a.price_kind, count(*) AS gpus, median(b.level) AS level
    FROM _elsewhere AS a
    JOIN _elsewhere AS b
        ON b.source = a.source AND b.price_kind = a.price_kind AND b.gpu_id <> a.gpu_id
    GROUP BY ALL
),

_compared AS (
    SELECT
        a.*,
        CASE WHEN e.sources IS NOT NULL THEN
            a.usd_per_gpu_hour > p['market_above_factor'] * e.usd_per_gpu_hour
            OR a.usd_per_gpu_hour * p['market_below_factor'] < e.usd_per_gpu_hour
            OR coalesce(
                NOT a.marketplace AND (
                    a.usd_per_gpu_hour > p['market_range_factor'] * e.highest
                    OR a.usd_per_gpu_hour * p['market_range_factor'] < e.lowest
                ),
                FALSE
            )
        END AS far,
        coalesce(
            NOT a.marketplace AND l.gpus >= p['market_least_gpus']
            -- A short term costs more than other sources' longer terms, so the median over terms is used for
            -- reservations; gates compare a source's own terms with one another.
            AND abs(ln(
                if(a.price_kind = 'reserved', e.level, a.usd_per_gpu_hour / e.usd_per_gpu_hour) / l.level
            )) > ln(p['market_own_level_factor']),
            FALSE
        ) AS odd
    FROM _alone AS a
    LEFT JOIN _elsewhere AS e
        ON e.source = a.source AND e.gpu_id = a.gpu_id AND e.price_kind = a.price_kind
            AND a.own_reason IS NULL
    LEFT JOIN _levels AS l
        ON l.source = a.source AND l.gpu_id = a.gpu_id AND l.price_kind = a.price_kind
),

-- Bias of a source: if its median for a price kind is far from the market, a unit or a column was misread.
_biased AS (
    SELECT e.source, e.price_kind
    FROM _elsewhere AS e
    JOIN _asked AS a USING (source, gpu_id, price_kind)
    JOIN cost_parameters_by_source() AS p ON p.source = e.source AND p.price_kind = e.price_kind
    WHERE NOT a.marketplace
    GROUP BY ALL
    HAVING count(*) >= any_value(p.parameters['market_least_gpus'])
        AND abs(ln(median(e.level))) > ln(any_value(p.parameters['market_bias_factor']))
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
            WHEN source IN (FROM _misread) OR (source, price_kind) IN (FROM _biased)
                THEN 'source_far_from_market'
            WHEN odd THEN 'price_odd_for_its_source'
        END AS not_ranked_reason
    FROM _compared
)

SELECT
    * EXCLUDE (
        source_provider, serverless_training, p, impossible_machine, network_attached, marketplace,
        own_reason, far, odd
    ),
    not_ranked_reason IS NULL AS ranked
FROM _judged
