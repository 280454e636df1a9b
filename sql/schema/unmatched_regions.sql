CREATE TABLE main.unmatched_regions (
    source VARCHAR NOT NULL,
    region VARCHAR NOT NULL,
    continent VARCHAR,
    reviewed BOOLEAN NOT NULL,
    note VARCHAR,
    offers INTEGER NOT NULL,
    example_url VARCHAR NOT NULL,
    first_day DATE NOT NULL,
    last_day DATE NOT NULL
);

COMMENT ON TABLE main.unmatched_regions IS 'Regions of the last accepted offers that give no country.';
COMMENT ON COLUMN main.unmatched_regions.source IS 'Key into sources.';
COMMENT ON COLUMN main.unmatched_regions.region IS 'The region in the source''s own words.';
COMMENT ON COLUMN main.unmatched_regions.continent IS 'Continent, where the words name one.';
COMMENT ON COLUMN main.unmatched_regions.reviewed IS 'Whether regions lists these words as naming no country; otherwise they are new.';
COMMENT ON COLUMN main.unmatched_regions.note IS 'What regions says of them.';
COMMENT ON COLUMN main.unmatched_regions.offers IS 'Offers with this region.';
COMMENT ON COLUMN main.unmatched_regions.example_url IS 'A page that shows it.';
COMMENT ON COLUMN main.unmatched_regions.first_day IS 'First day it was seen.';
COMMENT ON COLUMN main.unmatched_regions.last_day IS 'Last day it was seen.';
