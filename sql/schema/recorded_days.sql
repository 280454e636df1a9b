CREATE TABLE main.recorded_days (
    source VARCHAR NOT NULL,
    day DATE NOT NULL,
    offers INTEGER NOT NULL,
    rejects INTEGER NOT NULL,
    held INTEGER NOT NULL
);

COMMENT ON TABLE main.recorded_days IS 'What the record has of each source and day, all days since the first. The offers themselves are in offers for the newest 30 days, and in the record for all.';
COMMENT ON COLUMN main.recorded_days.source IS 'Key into sources.';
COMMENT ON COLUMN main.recorded_days.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.recorded_days.offers IS 'Accepted offers.';
COMMENT ON COLUMN main.recorded_days.rejects IS 'Rows that became no offer.';
COMMENT ON COLUMN main.recorded_days.held IS 'Those of them that are held: a second reading or a person may release them.';
