CREATE TABLE main.countries (
    country VARCHAR NOT NULL CHECK (regexp_full_match(country, '[A-Z]{2}')),
    name VARCHAR NOT NULL,
    other_names VARCHAR,
    continent VARCHAR NOT NULL,
    eu_member BOOLEAN NOT NULL,
    evidence_url VARCHAR CHECK (NOT eu_member OR evidence_url IS NOT NULL)
);

COMMENT ON TABLE main.countries IS 'Countries by their two-letter code, their continents, and which are members of the European Union. From catalog/countries.csv.';
COMMENT ON COLUMN main.countries.country IS 'ISO 3166-1 alpha-2 code. Key.';
COMMENT ON COLUMN main.countries.name IS 'Its name in English.';
COMMENT ON COLUMN main.countries.other_names IS 'Other names that sources use, with semicolons between them.';
COMMENT ON COLUMN main.countries.continent IS 'africa, antarctica, asia, europe, north_america, oceania or south_america.';
COMMENT ON COLUMN main.countries.eu_member IS 'Whether it is a member of the European Union, which is what eu means as the country of a job. Territories with a code apart count as no members.';
COMMENT ON COLUMN main.countries.evidence_url IS 'Where the European Union lists its members; null for other countries.';
