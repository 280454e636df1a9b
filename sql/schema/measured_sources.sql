CREATE TABLE main.measured_sources (
    source VARCHAR PRIMARY KEY,
    family VARCHAR NOT NULL,
    publisher VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    uncertainty DOUBLE,
    note VARCHAR
);

COMMENT ON TABLE main.measured_sources IS 'Who published the measured runs. From catalog/measured_sources.csv.';
COMMENT ON COLUMN main.measured_sources.source IS 'Key, as in measured_runs.';
COMMENT ON COLUMN main.measured_sources.family IS 'Sources of one lab, or that share figures: they are held out together when the model''s error is measured.';
COMMENT ON COLUMN main.measured_sources.publisher IS 'Who published it.';
COMMENT ON COLUMN main.measured_sources.title IS 'What was published.';
COMMENT ON COLUMN main.measured_sources.uncertainty IS 'Relative error of its figures where they are rounded or what was read is not stated, a share; null where they are exact.';
COMMENT ON COLUMN main.measured_sources.note IS 'What to know before relying on it.';
