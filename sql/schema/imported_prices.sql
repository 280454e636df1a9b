CREATE TABLE main.imported_prices (
    day DATE NOT NULL,
    gpu_id VARCHAR NOT NULL,
    raw_label VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    provider VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    tier VARCHAR,
    usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    region VARCHAR,
    country VARCHAR,
    observation_source VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    line INTEGER NOT NULL
);

COMMENT ON TABLE main.imported_prices IS 'Dated prices that the user imported from elsewhere (gpufare import). They were not captured here: no ranking and no market index uses them.';
COMMENT ON COLUMN main.imported_prices.day IS 'Day of the observation, as its source states it.';
COMMENT ON COLUMN main.imported_prices.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.imported_prices.raw_label IS 'The GPU or machine in the words of the file.';
COMMENT ON COLUMN main.imported_prices.gpu_count IS 'GPUs of the whole offer.';
COMMENT ON COLUMN main.imported_prices.provider IS 'Who rented the machine out, in the words of the file.';
COMMENT ON COLUMN main.imported_prices.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.imported_prices.term_days IS 'Length of a reserved term in days; null where the file does not say.';
COMMENT ON COLUMN main.imported_prices.tier IS 'secure, community or marketplace, where the file says so.';
COMMENT ON COLUMN main.imported_prices.usd_per_gpu_hour IS 'USD per GPU and hour.';
COMMENT ON COLUMN main.imported_prices.region IS 'Region in the words of the file.';
COMMENT ON COLUMN main.imported_prices.country IS 'ISO 3166-1 alpha-2; null where the file does not say.';
COMMENT ON COLUMN main.imported_prices.observation_source IS 'Who stated the price: a URL or title.';
COMMENT ON COLUMN main.imported_prices.evidence IS 'What the price rests on, in the words of the file.';
COMMENT ON COLUMN main.imported_prices.file IS 'Name of the imported file.';
COMMENT ON COLUMN main.imported_prices.line IS 'Line of that file.';
