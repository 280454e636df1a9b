CREATE TABLE main.capture_outcomes (
    day DATE NOT NULL,
    source VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL DEFAULT '',
    stands BOOLEAN NOT NULL DEFAULT FALSE,
    status VARCHAR NOT NULL,
    accepted BOOLEAN NOT NULL,
    reason VARCHAR,
    warnings VARCHAR,
    requests INTEGER NOT NULL,
    failed_requests INTEGER NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 VARCHAR,
    duration_seconds DOUBLE NOT NULL,
    retries INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    rejects INTEGER NOT NULL,
    matched INTEGER NOT NULL,
    ambiguous INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    error VARCHAR,
    observed_at TIMESTAMPTZ,
    result VARCHAR,
    code VARCHAR,
    regions INTEGER,
    replayed BOOLEAN
);

COMMENT ON TABLE main.capture_outcomes IS 'The outcome of each attempt at a source, from the first request to acceptance.';
COMMENT ON COLUMN main.capture_outcomes.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.capture_outcomes.source IS 'Key into sources.';
COMMENT ON COLUMN main.capture_outcomes.attempt IS 'Id of the capture: the UTC time at which it began.';
COMMENT ON COLUMN main.capture_outcomes.stands IS 'Whether the day''s offers are those of this attempt: of the accepted attempts a complete one before a partial one, of complete ones the one that lacks fewer optional answers, of partial ones the one with more offers, then the newest.';
COMMENT ON COLUMN main.capture_outcomes.status IS 'How the capture ended: captured (every request answered but optional ones), partial, failed, needs_key, needs_permission (off by its terms or by the user''s choice), disabled.';
COMMENT ON COLUMN main.capture_outcomes.accepted IS 'Whether the attempt''s offers were accepted for publishing.';
COMMENT ON COLUMN main.capture_outcomes.reason IS 'Why they were not.';
COMMENT ON COLUMN main.capture_outcomes.warnings IS 'What was unusual but accepted.';
COMMENT ON COLUMN main.capture_outcomes.requests IS 'Requests of the capture, including those that were not sent (disallowed, refused, without a key, given up).';
COMMENT ON COLUMN main.capture_outcomes.failed_requests IS 'Requests without a usable answer, optional ones and those that others made up for included.';
COMMENT ON COLUMN main.capture_outcomes.bytes IS 'Bytes of the archived answers.';
COMMENT ON COLUMN main.capture_outcomes.sha256 IS 'SHA-256 of the first usable answer.';
COMMENT ON COLUMN main.capture_outcomes.duration_seconds IS 'Duration of the capture in seconds.';
COMMENT ON COLUMN main.capture_outcomes.retries IS 'Requests sent again after a failure.';
COMMENT ON COLUMN main.capture_outcomes.rows IS 'Offers read.';
COMMENT ON COLUMN main.capture_outcomes.rejects IS 'Rows rejected.';
COMMENT ON COLUMN main.capture_outcomes.matched IS 'Offers whose GPU is identified.';
COMMENT ON COLUMN main.capture_outcomes.ambiguous IS 'Offers whose GPU could be one of several.';
COMMENT ON COLUMN main.capture_outcomes.unknown IS 'Offers whose label is in no catalogue.';
COMMENT ON COLUMN main.capture_outcomes.error IS 'What went wrong, as a sentence.';
COMMENT ON COLUMN main.capture_outcomes.observed_at IS 'When the last usable answer arrived (UTC).';
COMMENT ON COLUMN main.capture_outcomes.result IS 'How the attempt ended, for people: fresh, partial, doubted (read, but not believed), changed (another shape), refused_by_host, refused_by_us, unreachable, failed_here, needs_key, needs_permission, retired.';
COMMENT ON COLUMN main.capture_outcomes.code IS 'How the request ended that decided the result; null where none failed.';
COMMENT ON COLUMN main.capture_outcomes.regions IS 'Different regions among the offers read.';
COMMENT ON COLUMN main.capture_outcomes.replayed IS 'Whether saved answers were read, from a folder or a replay server, and the provider was not asked.';
