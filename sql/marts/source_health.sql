WITH _attempts AS (
    SELECT
        *,
        row_number() OVER _newest_first AS place,
        -- Number of attempts accepted since this one, itself included: 0 for failures since the last success.
        count(*) FILTER (accepted) OVER (_newest_first ROWS UNBOUNDED PRECEDING) AS accepted_since
    FROM main.capture_outcomes
    WHERE day <= getvariable('as_of_day')::DATE
        -- A source that regains its permission returns to the state in which its earlier attempts left it.
        AND NOT (
            status = 'needs_permission'
            AND NOT coalesce(list_contains(getvariable('sources_off')::VARCHAR[], source), TRUE)
        )
    WINDOW _newest_first AS (PARTITION BY source ORDER BY day DESC, attempt DESC)
),

_failures AS (
    SELECT source, min(day) AS failing_since, count(*) AS failed_attempts
    FROM _attempts
    WHERE accepted_since = 0 AND status <> 'needs_permission'
    GROUP BY source
),

-- When each source was first asked on each day. What was replayed later says nothing about the usual time.
_begun AS (
    SELECT source, day, min(try_strptime(attempt, '%Y%m%dT%H%M%S.%fZ')) AS first_at
    FROM _attempts
    WHERE try_strptime(attempt, '%Y%m%dT%H%M%S.%fZ')::DATE = day
    GROUP BY source, day
),

-- The next day's attempt is due at the latest of the usual times, so that one more, early, moves nothing.
_usual AS (
    SELECT source, max(first_at - day::TIMESTAMP) AS time_of_day
    FROM (
        SELECT *
        FROM _begun
        QUALIFY row_number() OVER (PARTITION BY source ORDER BY day DESC) <= 3
    )
    GROUP BY source
),

-- Once half as many sources as on the day before have been asked, the others were due as well.
_today AS (
    SELECT median(first_at) FILTER (day = getvariable('as_of_day')::DATE) AS begun_at
    FROM _begun
    WHERE day = getvariable('as_of_day')::DATE
        OR day = (SELECT max(b.day) FROM _begun AS b WHERE b.day < getvariable('as_of_day')::DATE)
    HAVING 3 * count(*) FILTER (day = getvariable('as_of_day')::DATE) >= count(*)
),

_off_now AS (
    SELECT
        unnest(getvariable('sources_off')::VARCHAR[]) AS source,
        unnest(getvariable('reasons_off')::VARCHAR[]) AS reason
),

_accepted AS (
    SELECT
        source,
        max(day) AS last_accepted_day,
        count(*) AS offers,
        count(*) FILTER (ranked) AS offers_ranked,
        count(*) FILTER (match_status = 'matched') / count(*) AS label_coverage,
        count(country) / count(*) AS country_coverage,
        count(continent) / count(*) AS continent_coverage,
        count(DISTINCT gpu_id) FILTER (ranked) AS gpus
    FROM main.offers_latest
    GROUP BY source
    UNION ALL
    SELECT s.source, max(r.day), 0, 0, NULL, NULL, NULL, 0
    FROM main.sources AS s
    CROSS JOIN main.exchange_rates AS r
    WHERE s.kind = 'exchange_rates' AND r.day <= getvariable('as_of_day')::DATE
    GROUP BY s.source
)

SELECT
    s.source, s.title, s.provider, s.kind, s.disabled,
    CASE WHEN s.needs_key AND coalesce(a.status, 'needs_key') = 'needs_key'
        AND NOT coalesce(list_contains(getvariable('sources_with_keys')::VARCHAR[], s.source), FALSE)
        THEN s.key_variables
    END AS missing_key,
    -- If a source is off now, that explains its state better than the outcome of its last attempt.
    CASE
        WHEN n.reason IS NOT NULL THEN n.reason
        WHEN a.status = 'needs_permission' THEN coalesce(a.error, a.reason)
        -- At publication, the user's choices are unknown: a source that was asked must have been allowed.
        WHEN getvariable('sources_off') IS NULL AND a.day IS NULL AND s.terms_automated = 'forbidden'
            AND NOT s.needs_key AND s.disabled IS NULL
            THEN 'terms_forbid'
    END AS no_permission,
    a.day AS last_attempt_day,
    a.accepted AS last_attempt_accepted,
    a.status AS last_status,
    -- Without a usual time, an attempt is due by the end of the next day.
    to_timestamp(epoch(least(
        coalesce(
            a.day + INTERVAL 1 DAY + u.time_of_day + getvariable('late_after')::INTERVAL,
            a.day + INTERVAL 2 DAY
        ),
        CASE WHEN a.day < getvariable('as_of_day')::DATE
            THEN t.begun_at + getvariable('late_after')::INTERVAL
        END
    ))) AS attempt_due,
    CASE
        WHEN a.accepted AND coalesce(o.last_accepted_day < a.day, TRUE)
            THEN 'accepted_prices_missing'
        ELSE nullif(
            concat_ws(
                ': ', CASE WHEN a.reason IS DISTINCT FROM a.error THEN a.reason END, a.error,
                CASE WHEN a.accepted THEN a.lost END
            ), ''
        )
    END AS last_error,
    f.failing_since,
    coalesce(f.failed_attempts, 0) AS failed_attempts,
    o.last_accepted_day,
    s.stale_after_days,
    coalesce(o.offers, 0) AS offers,
    coalesce(o.offers_ranked, 0) AS offers_ranked,
    coalesce(a.rejects, 0) AS rejects,
    o.label_coverage, o.country_coverage, o.continent_coverage,
    coalesce(o.gpus, 0) AS gpus,
    s.evidence_level, s.evidence_date, s.evidence_note
FROM main.sources AS s
LEFT JOIN _attempts AS a ON a.source = s.source AND a.place = 1
LEFT JOIN _off_now AS n ON n.source = s.source
LEFT JOIN _failures AS f ON f.source = s.source AND a.status <> 'needs_permission' AND n.source IS NULL
LEFT JOIN _accepted AS o ON o.source = s.source
LEFT JOIN _usual AS u ON u.source = s.source
LEFT JOIN _today AS t ON TRUE
