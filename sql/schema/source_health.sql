CREATE TABLE main.source_health (
    source VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    disabled VARCHAR,
    missing_key VARCHAR,
    no_permission VARCHAR,
    last_attempt_day DATE,
    last_attempt_accepted BOOLEAN,
    last_status VARCHAR,
    last_error VARCHAR,
    failing_since DATE,
    failed_attempts INTEGER NOT NULL,
    last_accepted_day DATE,
    stale_after_days INTEGER NOT NULL,
    offers INTEGER NOT NULL,
    offers_ranked INTEGER NOT NULL,
    rejects INTEGER NOT NULL,
    label_coverage DOUBLE,
    country_coverage DOUBLE,
    continent_coverage DOUBLE,
    gpus INTEGER NOT NULL,
    evidence_level VARCHAR NOT NULL,
    evidence_date DATE NOT NULL,
    evidence_note VARCHAR NOT NULL,
    -- What depends on the day of the question is computed when it is asked.
    age_days INTEGER GENERATED ALWAYS AS (
        coalesce(getvariable('today')::DATE, make_timestamp(epoch_us(now()))::DATE) - last_accepted_day
    ) VIRTUAL,
    ranked_until DATE GENERATED ALWAYS AS (
        CASE kind WHEN 'prices' THEN last_accepted_day + stale_after_days END
    ) VIRTUAL,
    state VARCHAR GENERATED ALWAYS AS (
        CASE
            WHEN disabled IS NOT NULL THEN 'disabled'
            WHEN no_permission IS NOT NULL THEN 'needs_permission'
            WHEN last_accepted_day IS NULL AND missing_key IS NOT NULL THEN 'needs_key'
            WHEN last_accepted_day IS NULL AND coalesce(last_status, 'needs_key') = 'needs_key'
                THEN 'not_asked'
            WHEN last_accepted_day IS NULL THEN 'never_accepted'
            WHEN age_days > stale_after_days THEN 'stale'
            WHEN NOT last_attempt_accepted OR last_accepted_day < last_attempt_day THEN 'failing'
            WHEN age_days > 1 THEN 'aging'
            ELSE 'current'
        END
    ) VIRTUAL,
    why VARCHAR GENERATED ALWAYS AS (
        CASE state
            WHEN 'disabled' THEN disabled
            WHEN 'needs_key' THEN 'needs a key in ' || missing_key
            WHEN 'not_asked' THEN 'not asked yet'
            WHEN 'current' THEN 'incomplete: ' || last_error
            ELSE concat_ws(
                '; ',
                CASE
                    WHEN state = 'needs_permission' THEN no_permission
                    WHEN state = 'aging' OR (last_attempt_accepted AND last_accepted_day = last_attempt_day)
                        THEN 'not asked since ' || last_attempt_day
                    ELSE last_error
                END
                || coalesce(
                    ' (since ' || failing_since
                    || CASE WHEN failed_attempts > 1 THEN ', ' || failed_attempts || ' attempts' ELSE '' END
                    || ')',
                    ''
                ),
                CASE
                    WHEN last_accepted_day IS NULL THEN NULL
                    WHEN kind <> 'prices' THEN 'its last rates are of ' || last_accepted_day
                    WHEN state = 'stale' AND offers_ranked > 0 THEN
                        'its prices of ' || last_accepted_day || ' are older than ' || stale_after_days
                        || ' days and still ranked, because nothing newer is published'
                    WHEN state = 'stale' THEN
                        'its prices of ' || last_accepted_day || ' are older than ' || stale_after_days
                        || ' days: rankings after ' || ranked_until || ' leave them out'
                    WHEN offers_ranked > 0 THEN
                        'its prices of ' || last_accepted_day || ' stay in the rankings until '
                        || ranked_until
                    ELSE 'none of its prices of ' || last_accepted_day || ' is ranked'
                END
            )
        END
    ) VIRTUAL
);

COMMENT ON TABLE main.source_health IS 'State of each source: its newest attempt, its last accepted prices, their age, and the share of labels matched to a GPU. What gpufare sources shows.';
COMMENT ON COLUMN main.source_health.source IS 'Key into sources.';
COMMENT ON COLUMN main.source_health.title IS 'Usual name.';
COMMENT ON COLUMN main.source_health.provider IS 'Provider of the GPUs.';
COMMENT ON COLUMN main.source_health.kind IS 'prices or exchange_rates.';
COMMENT ON COLUMN main.source_health.disabled IS 'Why it is never asked; null for a source that is.';
COMMENT ON COLUMN main.source_health.missing_key IS 'Environment variables for the key that it cannot be asked without and that was not set; null where none is missing.';
COMMENT ON COLUMN main.source_health.no_permission IS 'Why it is not asked, and how to allow it: its terms of use forbid automated reading, or the user disabled it; null for a source that may be asked.';
COMMENT ON COLUMN main.source_health.last_attempt_day IS 'Day of the newest attempt, successful or not, also where no request could be sent.';
COMMENT ON COLUMN main.source_health.last_attempt_accepted IS 'Whether its answers were accepted; null without an attempt.';
COMMENT ON COLUMN main.source_health.last_status IS 'How it ended.';
COMMENT ON COLUMN main.source_health.last_error IS 'What went wrong in it.';
COMMENT ON COLUMN main.source_health.failing_since IS 'Day of the first failed attempt after the last accepted one; null where there is none.';
COMMENT ON COLUMN main.source_health.failed_attempts IS 'Failed attempts since then, without an accepted one between them.';
COMMENT ON COLUMN main.source_health.last_accepted_day IS 'Day of the last accepted offers, or exchange rates.';
COMMENT ON COLUMN main.source_health.stale_after_days IS 'Offers older than this leave the rankings.';
COMMENT ON COLUMN main.source_health.offers IS 'Offers of the last accepted day.';
COMMENT ON COLUMN main.source_health.offers_ranked IS 'Those of them that the rankings of the published day use.';
COMMENT ON COLUMN main.source_health.rejects IS 'Rows left out in the newest attempt.';
COMMENT ON COLUMN main.source_health.label_coverage IS 'Share of the offers whose GPU is identified, 0 to 1.';
COMMENT ON COLUMN main.source_health.country_coverage IS 'Share of the offers whose country is known, 0 to 1; unmatched_regions lists the regions that give none.';
COMMENT ON COLUMN main.source_health.continent_coverage IS 'Share of the offers whose continent is known, 0 to 1.';
COMMENT ON COLUMN main.source_health.gpus IS 'Different GPUs among the ranked offers.';
COMMENT ON COLUMN main.source_health.evidence_level IS 'What the reader was checked against.';
COMMENT ON COLUMN main.source_health.evidence_date IS 'Day of that evidence.';
COMMENT ON COLUMN main.source_health.evidence_note IS 'That evidence in words.';
COMMENT ON COLUMN main.source_health.age_days IS 'Days from last_accepted_day to today (UTC), whenever the question is asked.';
COMMENT ON COLUMN main.source_health.ranked_until IS 'Last day whose rankings use prices of last_accepted_day; null for exchange rates.';
COMMENT ON COLUMN main.source_health.state IS 'State today. The newest attempt decides: current (accepted, and the prices are of today or yesterday), aging (accepted, but not asked since), failing (not accepted; the last good prices stay in the rankings until ranked_until), stale (the last good prices are older than stale_after_days), never_accepted, needs_key, needs_permission, not_asked or disabled.';
COMMENT ON COLUMN main.source_health.why IS 'The reason for that state: what went wrong, since when, and how long the last good prices stay in the rankings; for a current source what is incomplete, else null.';
