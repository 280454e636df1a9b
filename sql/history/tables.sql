-- Tables that a build keeps for the next build, in addition to the published tables. These tables are not
-- meant for queries: their names and columns may change with any version.
CREATE SCHEMA history;

-- The days of the record that have been loaded into tables, each with a hash of its rows or journal entries.
-- The source is empty for rankings and exchange rates. The table name as_of_day marks the day being built.
CREATE TABLE history.loaded_days (
    table_name VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    day DATE NOT NULL,
    digest VARCHAR NOT NULL
);

-- The prices of days that are no longer in offers, for cost_history.
CREATE TABLE history.price_series (
    series_id INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    tier VARCHAR,
    country VARCHAR,
    continent VARCHAR
);
CREATE TABLE history.prices (
    day DATE NOT NULL,
    series_id INTEGER NOT NULL,
    usd_per_gpu_hour DECIMAL(18, 8) NOT NULL
);

-- Among days no longer in offers, the first on which a source had a label or region, or any had a GPU.
CREATE TABLE history.first_seen (
    kind VARCHAR NOT NULL CHECK (kind IN ('label', 'region', 'gpu')),
    source VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    first_day DATE NOT NULL
);

-- Evidence about claims: prices of days no longer in offers, up to the first day with prices after the claim.
CREATE TABLE history.claim_prices (
    claim_id VARCHAR NOT NULL,
    day DATE NOT NULL,
    provider VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    cheapest DOUBLE NOT NULL,
    dearest DOUBLE NOT NULL
);
CREATE TABLE history.spot_prices (
    day DATE NOT NULL,
    provider VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    spot_usd DECIMAL(18, 8),
    on_demand_usd DECIMAL(18, 8)
);
