-- What a build keeps for the next one besides the published tables: not for questions, names and columns may
-- change with any version.
CREATE SCHEMA history;

-- What of the record is in the tables: the days of its files, as they were (RecordFile.stamp).
CREATE TABLE history.loaded_files (
    folder VARCHAR NOT NULL,
    source VARCHAR,
    day DATE NOT NULL,
    attempt VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL
);

-- The files of months of which every part is loaded, and nothing else of the month, as these files then were.
-- One that is still so need not be opened.
CREATE TABLE history.whole_months (
    folder VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    month VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL
);

-- The prices of the days that are no longer in offers, for cost_history.
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

-- The first of those days on which a source had a label, a region or a GPU.
CREATE TABLE history.first_seen (
    kind VARCHAR NOT NULL CHECK (kind IN ('label', 'region', 'gpu')),
    source VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    first_day DATE NOT NULL
);

-- Prices of those days that are evidence on claims: up to the first day after the claim that has any.
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
