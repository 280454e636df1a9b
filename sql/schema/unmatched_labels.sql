CREATE TABLE main.unmatched_labels (
    source VARCHAR NOT NULL,
    raw_label VARCHAR NOT NULL,
    match_status VARCHAR NOT NULL,
    candidates VARCHAR,
    rule VARCHAR NOT NULL,
    offers INTEGER NOT NULL,
    cheapest_usd_per_gpu_hour DECIMAL(18, 8),
    example_url VARCHAR NOT NULL,
    first_day DATE NOT NULL,
    last_day DATE NOT NULL
);

COMMENT ON TABLE main.unmatched_labels IS 'Labels that do not identify a GPU, with how often and where they appear in the last accepted offers.';
COMMENT ON COLUMN main.unmatched_labels.source IS 'Key into sources.';
COMMENT ON COLUMN main.unmatched_labels.raw_label IS 'The label in the source''s own words.';
COMMENT ON COLUMN main.unmatched_labels.match_status IS 'ambiguous or unknown.';
COMMENT ON COLUMN main.unmatched_labels.candidates IS 'What an ambiguous label could be.';
COMMENT ON COLUMN main.unmatched_labels.rule IS 'The rule that left it open.';
COMMENT ON COLUMN main.unmatched_labels.offers IS 'Offers with this label.';
COMMENT ON COLUMN main.unmatched_labels.cheapest_usd_per_gpu_hour IS 'Cheapest of them in USD per GPU and hour.';
COMMENT ON COLUMN main.unmatched_labels.example_url IS 'A page that shows it.';
COMMENT ON COLUMN main.unmatched_labels.first_day IS 'First day it was seen.';
COMMENT ON COLUMN main.unmatched_labels.last_day IS 'Last day it was seen.';
