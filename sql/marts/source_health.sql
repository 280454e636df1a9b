WITH _attempt AS (
    SELECT *
    FROM main.capture_outcomes
    WHERE day <= getvariable('as_of_day')::DATE
    QUALIFY row_number() OVER (PARTITION BY source ORDER BY day DESC, attempt DESC) = 1
),

_offers AS (
    SELECT
        source,
        max(day) AS last_accepted_day,
        max(age_days) AS age_days,
        bool_or(stale) AS stale,
        count(*) AS offers,
        count(*) FILTER (ranked) AS offers_ranked,
        count(*) FILTER (match_status = 'matched') / count(*) AS label_coverage,
        count(DISTINCT gpu_id) FILTER (ranked) AS gpus
    FROM main.offers_latest
    GROUP BY source
),

_facts AS (
    SELECT
        s.source, s.title, s.provider, s.kind, s.disabled, s.key_variables, s.stale_after_days,
        s.evidence_level, s.evidence_date, s.evidence_note,
        a.day AS last_attempt_day,
        a.status AS last_status,
        coalesce(a.error, a.reason) AS last_error,
        coalesce(a.rejects, 0) AS rejects,
        a.accepted AS last_attempt_accepted,
        o.last_accepted_day, o.age_days, o.stale, o.label_coverage,
        coalesce(o.offers, 0) AS offers,
        coalesce(o.offers_ranked, 0) AS offers_ranked,
        coalesce(o.gpus, 0) AS gpus
    FROM main.sources AS s
    LEFT JOIN _attempt AS a USING (source)
    LEFT JOIN _offers AS o USING (source)
),

_judged AS (
    SELECT
        *,
        CASE
            WHEN kind = 'exchange_rates' AND last_attempt_accepted THEN 'current'
            WHEN age_days = 0 THEN 'current'
            WHEN stale THEN 'stale'
            WHEN age_days > 0 THEN 'aging'
            WHEN disabled IS NOT NULL THEN 'disabled'
            WHEN last_status = 'needs_key' THEN 'needs_key'
            WHEN last_attempt_day IS NULL AND key_variables IS NOT NULL THEN 'needs_key'
            WHEN last_attempt_day IS NULL THEN 'not_asked'
            ELSE 'never_accepted'
        END AS state
    FROM _facts
)

SELECT
    source, title, provider, state,
    CASE state
        WHEN 'current' THEN NULL
        WHEN 'aging' THEN coalesce(last_error, 'no newer capture')
        WHEN 'stale' THEN 'the last accepted prices are ' || age_days || ' days old, the limit is '
            || stale_after_days
        WHEN 'disabled' THEN disabled
        WHEN 'needs_key' THEN 'needs a key in ' || key_variables
        WHEN 'never_accepted' THEN coalesce(last_error, last_status)
    END AS why,
    last_attempt_day, last_status, last_error, last_accepted_day, age_days, stale_after_days,
    offers, offers_ranked, rejects, label_coverage, gpus, evidence_level, evidence_date, evidence_note
FROM _judged
