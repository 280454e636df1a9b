CREATE TABLE main.regions (
    source VARCHAR,
    region VARCHAR NOT NULL,
    country VARCHAR,
    continent VARCHAR,
    place VARCHAR,
    evidence_url VARCHAR,
    note VARCHAR
);

COMMENT ON TABLE main.regions IS 'Which country and continent the sources'' words for regions mean. From catalog/regions.csv; the first row that a region matches counts, a source''s own rows before those of any source.';
COMMENT ON COLUMN main.regions.source IS 'Key into sources; null for any source.';
COMMENT ON COLUMN main.regions.region IS 'The source''s words, in any case: * is any text, <country code> an ISO 3166-1 alpha-2 code, which is then the country.';
COMMENT ON COLUMN main.regions.country IS 'Country (ISO 3166-1 alpha-2); null where the words contain it, or name none.';
COMMENT ON COLUMN main.regions.continent IS 'Its continent, or the one that the words name: africa, antarctica, asia, europe, north_america, oceania or south_america. Null where the words contain the country; without that, the words are known to name no place.';
COMMENT ON COLUMN main.regions.place IS 'Town, state or the like.';
COMMENT ON COLUMN main.regions.evidence_url IS 'Where the provider says so.';
COMMENT ON COLUMN main.regions.note IS 'Remark.';
