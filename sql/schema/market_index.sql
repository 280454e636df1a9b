CREATE TABLE main.market_index (
    day DATE NOT NULL,
    gpu_id VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    providers INTEGER NOT NULL,
    offers INTEGER NOT NULL,
    minimum_usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    lower_quartile_usd_per_gpu_hour DOUBLE NOT NULL,
    median_usd_per_gpu_hour DOUBLE NOT NULL,
    upper_quartile_usd_per_gpu_hour DOUBLE NOT NULL,
    maximum_usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    oldest_price_day DATE NOT NULL
);

COMMENT ON TABLE main.market_index IS 'Market prices per GPU and hour on each day. Method: each provider counts once, with its cheapest price for that GPU, kind and term; quartiles are over providers, interpolated. A provider whose page could not be read counts with its last accepted prices until they are stale. A price far from the median over sources of its day, GPU and kind (market_above_factor and market_below_factor of cost_parameters) does not count where more than market_least_sources sources are compared. Stale, flagged, unavailable and future prices, slices and unmatched labels do not count.';
COMMENT ON COLUMN main.market_index.day IS 'Day of the index.';
COMMENT ON COLUMN main.market_index.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.market_index.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.market_index.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.market_index.providers IS 'Providers included.';
COMMENT ON COLUMN main.market_index.offers IS 'Their offers.';
COMMENT ON COLUMN main.market_index.minimum_usd_per_gpu_hour IS 'Cheapest provider, USD per GPU and hour.';
COMMENT ON COLUMN main.market_index.lower_quartile_usd_per_gpu_hour IS 'A quarter of the providers is cheaper, USD per GPU and hour.';
COMMENT ON COLUMN main.market_index.median_usd_per_gpu_hour IS 'The middle provider, USD per GPU and hour.';
COMMENT ON COLUMN main.market_index.upper_quartile_usd_per_gpu_hour IS 'A quarter of the providers is more expensive, USD per GPU and hour.';
COMMENT ON COLUMN main.market_index.maximum_usd_per_gpu_hour IS 'Most expensive provider, USD per GPU and hour.';
COMMENT ON COLUMN main.market_index.oldest_price_day IS 'Day of the oldest price included.';
