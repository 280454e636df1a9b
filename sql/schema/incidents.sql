CREATE TABLE main.incidents (
    noticed_at TIMESTAMPTZ NOT NULL,
    day DATE,
    source VARCHAR,
    kind VARCHAR NOT NULL,
    sentence VARCHAR NOT NULL,
    path VARCHAR,
    reason VARCHAR NOT NULL,
    remedy VARCHAR NOT NULL
);

COMMENT ON TABLE main.incidents IS 'What went wrong with files, the disk or runs, and what was done about it. What a source did is in capture_outcomes.';
COMMENT ON COLUMN main.incidents.noticed_at IS 'When it was noticed (UTC).';
COMMENT ON COLUMN main.incidents.day IS 'Day whose data it concerns; null when it concerns none.';
COMMENT ON COLUMN main.incidents.source IS 'Source whose data it concerns, a key into sources; null when it concerns none.';
COMMENT ON COLUMN main.incidents.kind IS 'Code: damaged_file, missing_file, damaged_capture, own_catalogue, stray_file, unknown_source, unwritable, future_day, run_failed, not_published, digest_not_sent, not_stored.';
COMMENT ON COLUMN main.incidents.sentence IS 'What that code means.';
COMMENT ON COLUMN main.incidents.path IS 'The file or folder, relative to GPUFARE_HOME.';
COMMENT ON COLUMN main.incidents.reason IS 'What was wrong.';
COMMENT ON COLUMN main.incidents.remedy IS 'What was done about it, or what a person must do.';
