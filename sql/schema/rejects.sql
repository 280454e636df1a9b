CREATE TABLE main.rejects (
    day DATE NOT NULL,
    source VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    raw VARCHAR,
    observed_at TIMESTAMPTZ NOT NULL,
    source_url VARCHAR NOT NULL,
    capture_sha256 VARCHAR NOT NULL
);

COMMENT ON TABLE main.rejects IS 'Rows of the sources'' answers that became no offer, each with its reason.';
COMMENT ON COLUMN main.rejects.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.rejects.source IS 'Key into sources.';
COMMENT ON COLUMN main.rejects.reason IS 'Key into reject_reasons.';
COMMENT ON COLUMN main.rejects.detail IS 'What exactly was wrong with this row.';
COMMENT ON COLUMN main.rejects.raw IS 'The row as the source has it, as JSON, shortened when long.';
COMMENT ON COLUMN main.rejects.observed_at IS 'When the answer was captured (UTC).';
COMMENT ON COLUMN main.rejects.source_url IS 'Where it was read.';
COMMENT ON COLUMN main.rejects.capture_sha256 IS 'Hash of the archived answer.';
