CREATE TABLE main.capture_outcomes (
    day DATE NOT NULL,
    source VARCHAR NOT NULL,
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
    observed_at TIMESTAMPTZ
);

COMMENT ON TABLE main.capture_outcomes IS 'What became of each source on each day, from the first request to the verdict.';
COMMENT ON COLUMN main.capture_outcomes.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.capture_outcomes.source IS 'Key into sources.';
COMMENT ON COLUMN main.capture_outcomes.status IS 'How the capture ended.';
COMMENT ON COLUMN main.capture_outcomes.accepted IS 'Whether the day''s offers are published.';
COMMENT ON COLUMN main.capture_outcomes.reason IS 'Why they are not.';
COMMENT ON COLUMN main.capture_outcomes.warnings IS 'What was odd but let through.';
COMMENT ON COLUMN main.capture_outcomes.requests IS 'Requests made.';
COMMENT ON COLUMN main.capture_outcomes.failed_requests IS 'Requests without a usable answer.';
COMMENT ON COLUMN main.capture_outcomes.bytes IS 'Bytes of the answers.';
COMMENT ON COLUMN main.capture_outcomes.sha256 IS 'Hash over the answers.';
COMMENT ON COLUMN main.capture_outcomes.duration_seconds IS 'Time the capture took, in seconds.';
COMMENT ON COLUMN main.capture_outcomes.retries IS 'Requests made again after a failure.';
COMMENT ON COLUMN main.capture_outcomes.rows IS 'Offers read.';
COMMENT ON COLUMN main.capture_outcomes.rejects IS 'Rows left out.';
COMMENT ON COLUMN main.capture_outcomes.matched IS 'Offers whose GPU is settled.';
COMMENT ON COLUMN main.capture_outcomes.ambiguous IS 'Offers whose GPU could be one of several.';
COMMENT ON COLUMN main.capture_outcomes.unknown IS 'Offers whose label nobody knows.';
COMMENT ON COLUMN main.capture_outcomes.error IS 'What went wrong, in words.';
COMMENT ON COLUMN main.capture_outcomes.observed_at IS 'When the last answer came (UTC).';
