WITH _attempts AS (
    SELECT
        source, day,
        count(*) AS attempts,
        count(*) FILTER (accepted) AS accepted_attempts,
        sum(requests) AS requests,
        sum(failed_requests) AS failed_requests,
        arg_max(accepted, attempt) AS accepted,
        arg_max(status, attempt) AS status,
        nullif(
            arg_max(
                concat_ws(': ', CASE WHEN reason IS DISTINCT FROM error THEN reason END, error), attempt
            ),
            ''
        ) AS error
    FROM main.capture_outcomes
    WHERE day <= getvariable('as_of_day')::DATE
    GROUP BY source, day
),

_accepted AS (
    SELECT source, day, offers
    FROM main.recorded_days
    WHERE offers > 0
    UNION ALL
    SELECT s.source, r.day, count(*)
    FROM main.sources AS s
    CROSS JOIN main.exchange_rates AS r
    WHERE s.kind = 'exchange_rates'
    GROUP BY s.source, r.day
),

_incidents AS (
    SELECT source, day, count(*) AS incidents
    FROM main.incidents
    WHERE source IS NOT NULL AND day IS NOT NULL
    GROUP BY source, day
),

_days AS (
    SELECT a.*, g.day AS last_accepted_day
    FROM _attempts AS a
    ASOF LEFT JOIN _accepted AS g ON g.source = a.source AND g.day <= a.day
)

SELECT
    d.source, d.day,
    CASE
        WHEN d.status = 'disabled' THEN 'disabled'
        WHEN d.status = 'needs_permission' THEN 'needs_permission'
        WHEN d.last_accepted_day IS NULL AND d.status = 'needs_key' THEN 'needs_key'
        WHEN d.last_accepted_day IS NULL THEN 'never_accepted'
        WHEN d.day - d.last_accepted_day > s.stale_after_days THEN 'stale'
        WHEN NOT d.accepted OR d.last_accepted_day < d.day THEN 'failing'
        ELSE 'current'
    END AS state,
    d.error AS why,
    d.attempts, d.accepted_attempts,
    coalesce(o.offers, 0) AS offers,
    coalesce(r.rejects, 0) AS rejects,
    coalesce(r.held, 0) AS held,
    d.requests, d.failed_requests,
    coalesce(i.incidents, 0) AS incidents
FROM _days AS d
JOIN main.sources AS s ON s.source = d.source
LEFT JOIN _accepted AS o ON o.source = d.source AND o.day = d.day
LEFT JOIN main.recorded_days AS r ON r.source = d.source AND r.day = d.day
LEFT JOIN _incidents AS i ON i.source = d.source AND i.day = d.day
ORDER BY d.source, d.day
