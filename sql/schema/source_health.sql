CREATE TABLE main.source_health (
    source VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    why VARCHAR,
    last_attempt_day DATE,
    last_status VARCHAR,
    last_error VARCHAR,
    last_accepted_day DATE,
    age_days INTEGER,
    stale_after_days INTEGER NOT NULL,
    offers INTEGER NOT NULL,
    offers_ranked INTEGER NOT NULL,
    rejects INTEGER NOT NULL,
    label_coverage DOUBLE,
    gpus INTEGER NOT NULL,
    evidence_level VARCHAR NOT NULL,
    evidence_date DATE NOT NULL,
    evidence_note VARCHAR NOT NULL
);

COMMENT ON TABLE main.source_health IS 'State of each source: last attempt, last accepted prices, their age, and the share of labels matched to a GPU.';
COMMENT ON COLUMN main.source_health.source IS 'Key into sources.';
COMMENT ON COLUMN main.source_health.title IS 'Usual name.';
COMMENT ON COLUMN main.source_health.provider IS 'Provider of the GPUs.';
COMMENT ON COLUMN main.source_health.state IS 'current, aging (older than the published day but within the limit), stale (left the rankings), never_accepted, needs_key, not_asked or disabled.';
COMMENT ON COLUMN main.source_health.why IS 'The reason for that state, in words.';
COMMENT ON COLUMN main.source_health.last_attempt_day IS 'Day of the last attempt.';
COMMENT ON COLUMN main.source_health.last_status IS 'How it ended.';
COMMENT ON COLUMN main.source_health.last_error IS 'What went wrong in it.';
COMMENT ON COLUMN main.source_health.last_accepted_day IS 'Day of the last accepted offers.';
COMMENT ON COLUMN main.source_health.age_days IS 'Days from last_accepted_day to the published day.';
COMMENT ON COLUMN main.source_health.stale_after_days IS 'Offers older than this leave the rankings.';
COMMENT ON COLUMN main.source_health.offers IS 'Offers of the last accepted day.';
COMMENT ON COLUMN main.source_health.offers_ranked IS 'Those of them that rankings use.';
COMMENT ON COLUMN main.source_health.rejects IS 'Rows left out on the day of the last attempt.';
COMMENT ON COLUMN main.source_health.label_coverage IS 'Share of the offers whose GPU is identified, 0 to 1.';
COMMENT ON COLUMN main.source_health.gpus IS 'Different GPUs among the ranked offers.';
COMMENT ON COLUMN main.source_health.evidence_level IS 'What the reader was checked against.';
COMMENT ON COLUMN main.source_health.evidence_date IS 'Day of that evidence.';
COMMENT ON COLUMN main.source_health.evidence_note IS 'That evidence in words.';
