CREATE TABLE main.source_health_history (
    source VARCHAR NOT NULL,
    day DATE NOT NULL,
    state VARCHAR NOT NULL,
    why VARCHAR,
    attempts INTEGER NOT NULL,
    accepted_attempts INTEGER NOT NULL,
    offers INTEGER NOT NULL,
    rejects INTEGER NOT NULL,
    held INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    failed_requests INTEGER NOT NULL,
    incidents INTEGER NOT NULL
);

COMMENT ON TABLE main.source_health_history IS 'State of each source at the end of each day on which it was asked: when it failed, why, and what was kept of that day.';
COMMENT ON COLUMN main.source_health_history.source IS 'Key into sources.';
COMMENT ON COLUMN main.source_health_history.day IS 'Day of the attempts (UTC).';
COMMENT ON COLUMN main.source_health_history.state IS 'State at the end of that day, as in source_health: current, failing, stale, never_accepted, needs_key, needs_permission or disabled.';
COMMENT ON COLUMN main.source_health_history.why IS 'What went wrong in the last attempt of the day; for a current source what was incomplete, else null.';
COMMENT ON COLUMN main.source_health_history.attempts IS 'Attempts on that day.';
COMMENT ON COLUMN main.source_health_history.accepted_attempts IS 'Those of them whose answers were accepted.';
COMMENT ON COLUMN main.source_health_history.offers IS 'Offers of the day, or exchange rates, in the record.';
COMMENT ON COLUMN main.source_health_history.rejects IS 'Rows of the day in rejects.';
COMMENT ON COLUMN main.source_health_history.held IS 'Those of them that are held: a second reading or a person may release them.';
COMMENT ON COLUMN main.source_health_history.requests IS 'Requests of all attempts of the day.';
COMMENT ON COLUMN main.source_health_history.failed_requests IS 'Those of them without a usable answer.';
COMMENT ON COLUMN main.source_health_history.incidents IS 'Incidents that concern the source and the day; see incidents.';
