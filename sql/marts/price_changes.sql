-- history: covers the days from history_from to history_to
WITH _from AS (
    SELECT
        coalesce(getvariable('history_from')::DATE, '-infinity') AS first_day,
        coalesce(getvariable('history_to')::DATE, getvariable('as_of_day')::DATE) AS last_day
),

-- Each accepted day of a source, with the accepted day before it. Offers of days further apart than the
-- source's prices stay ranked are not compared one by one, since they may no longer be loaded.
_pairs AS (
    SELECT r.source, r.day, r.previous_day, r.day - r.previous_day <= s.stale_after_days AS is_near
    FROM (
        SELECT source, day, lag(day) OVER (PARTITION BY source ORDER BY day) AS previous_day
        FROM main.recorded_days
        WHERE offers > 0
    ) AS r
    JOIN main.sources AS s USING (source)
    WHERE r.previous_day IS NOT NULL AND r.day BETWEEN (SELECT f.first_day FROM _from AS f)
        AND (SELECT f.last_day FROM _from AS f)
),

_machines AS (
    SELECT
        day, gpu_id, price_kind, term_days, source, provider, tier,
        [raw_label, instance_type, gpu_count::VARCHAR, region, native_unit] AS machine,
        bool_or(tier_class = 'marketplace') AS marketplace,
        min(usd_per_gpu_hour) FILTER (
            usd_per_gpu_hour IS NOT NULL AND coalesce(flag_reason, 'imported') = 'imported'
            AND coalesce(available, TRUE) AND coalesce(effective_from <= day, TRUE)
        ) AS usd_per_gpu_hour
    FROM main.offers
    WHERE match_status = 'matched' AND gpu_count = floor(gpu_count)
    GROUP BY ALL
),

-- Each machine on a day and on the accepted day before it. On a marketplace, hosts come and go, so that only
-- the series is compared.
_compared AS (
    SELECT
        p.day, p.previous_day, m.* EXCLUDE (day, usd_per_gpu_hour), NULL AS now,
        m.usd_per_gpu_hour AS before
    FROM _pairs AS p
    JOIN _machines AS m ON m.source = p.source AND m.day = p.previous_day
    WHERE p.is_near
    UNION ALL BY NAME
    SELECT
        p.day, p.previous_day, m.* EXCLUDE (day, usd_per_gpu_hour), m.usd_per_gpu_hour AS now,
        NULL AS before
    FROM _pairs AS p
    JOIN _machines AS m ON m.source = p.source AND m.day = p.day
    WHERE p.is_near
),

_paired AS (
    SELECT
        day, previous_day, gpu_id, price_kind, term_days, source, provider, tier, machine,
        bool_or(marketplace) AS marketplace,
        min(now) AS now,
        min(before) AS before,
        count(*) = 2 AS is_on_both,
        -- A machine that is still listed without a valid price is neither gone nor comparable.
        bool_or(before IS NOT NULL) AND count(*) = 1 AS is_gone
    FROM _compared
    GROUP BY ALL
),

_series AS (
    SELECT
        day, previous_day, gpu_id, price_kind, term_days, source, provider, tier,
        bool_or(marketplace) AS marketplace,
        min(now) AS now,
        min(before) AS before,
        min(now) FILTER (now IS NOT NULL AND before IS NOT NULL) AS now_of_both,
        min(before) FILTER (now IS NOT NULL AND before IS NOT NULL) AS before_of_both,
        min(before) FILTER (is_gone) AS gone,
        -- What an incomplete reading lacks may still be listed.
        (source, day) IN (
            SELECT (o.source, o.day) FROM main.capture_outcomes AS o WHERE o.stands AND o.status = 'partial'
        ) AS is_partial
    FROM _paired
    GROUP BY ALL
),

-- Days too far apart: the cheapest prices.
_far AS (
    SELECT
        p.day, p.previous_day, h.gpu_id, h.price_kind, h.term_days, h.source, h.provider, h.tier,
        h.usd_per_gpu_hour AS now, b.usd_per_gpu_hour AS before
    FROM _pairs AS p
    JOIN main.price_history AS h ON h.source = p.source AND h.day = p.day
    JOIN main.price_history AS b
        ON b.source = p.source AND b.day = p.previous_day AND b.gpu_id = h.gpu_id
        AND b.price_kind = h.price_kind AND b.term_days IS NOT DISTINCT FROM h.term_days
        AND b.provider = h.provider AND b.tier IS NOT DISTINCT FROM h.tier
    WHERE NOT p.is_near
),

_changes AS (
    SELECT
        * EXCLUDE (now, before, now_of_both, before_of_both, gone, marketplace, is_partial),
        unnest([
            {
                'change': 'moved',
                'now': CASE WHEN marketplace OR before_of_both IS NULL THEN now ELSE now_of_both END,
                'before': CASE WHEN marketplace OR before_of_both IS NULL THEN before ELSE before_of_both END
            },
            -- Machines under other names at other prices count as moved.
            CASE
                WHEN marketplace OR is_partial THEN NULL
                WHEN now IS NULL OR (before_of_both IS NOT NULL AND gone < before_of_both)
                THEN {'change': 'no_longer_listed', 'now': NULL, 'before': gone}
            END,
            CASE WHEN NOT marketplace AND now < now_of_both AND now < before
                THEN {'change': 'newly_listed', 'now': now, 'before': before}
            END
        ], recursive := TRUE)
    FROM _series
    UNION ALL BY NAME
    SELECT *, 'moved' AS change FROM _far
),

_dated AS (
    SELECT
        c.*,
        max(c.day) OVER (
            _series RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 DAY PRECEDING
        ) AS changed_before,
        c.day = max(c.day) OVER (
            _series RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS current
    FROM (
        SELECT * FROM _changes
        WHERE before IS NOT NULL AND (change <> 'moved' OR now <> before)
    ) AS c
    WINDOW _series AS (
        PARTITION BY c.gpu_id, c.price_kind, c.term_days, c.source, c.provider, c.tier ORDER BY c.day
    )
),

_since AS (
    SELECT
        gpu_id, price_kind, term_days, source, provider, tier,
        coalesce(max(changed), min(day)) AS since
    FROM (
        SELECT day, gpu_id, price_kind, term_days, source, provider, tier FROM main.price_history
        UNION ALL BY NAME
        SELECT day AS changed, gpu_id, price_kind, term_days, source, provider, tier
        FROM main.price_changes
        WHERE day < (SELECT f.first_day FROM _from AS f)
    )
    GROUP BY ALL
)

SELECT
    d.day, d.gpu_id, d.price_kind, d.term_days, d.source, d.provider, d.tier, d.change,
    d.now AS usd_per_gpu_hour,
    d.before AS previous_usd_per_gpu_hour,
    d.now - d.before AS change_usd,
    d.now / d.before - 1 AS change_share,
    d.previous_day,
    coalesce(d.changed_before, s.since) AS previous_since,
    d.current
FROM _dated AS d
JOIN _since AS s
    ON s.gpu_id = d.gpu_id AND s.price_kind = d.price_kind AND s.term_days IS NOT DISTINCT FROM d.term_days
    AND s.source = d.source AND s.provider = d.provider AND s.tier IS NOT DISTINCT FROM d.tier
ORDER BY d.day DESC, d.gpu_id, d.price_kind, d.source, d.tier, d.term_days, d.provider, d.change
