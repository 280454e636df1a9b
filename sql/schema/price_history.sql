CREATE TABLE main.price_history (
    day DATE NOT NULL,
    gpu_id VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL,
    offers INTEGER NOT NULL,
    usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    median_usd_per_gpu_hour DOUBLE NOT NULL
);

COMMENT ON TABLE main.price_history IS 'Prices of each source per GPU and hour on each day: the cheapest and the median offer. Only offers whose GPU is identified and whose price is not in doubt; the source imported has prices of files (gpufare import).';
COMMENT ON COLUMN main.price_history.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.price_history.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.price_history.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.price_history.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.price_history.source IS 'Key into sources.';
COMMENT ON COLUMN main.price_history.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.price_history.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.price_history.tier_class IS 'What kind of renting tier is: dedicated (the provider''s own machines), community (private owners'' machines at the provider''s price), marketplace (each owner sets a price) or serverless.';
COMMENT ON COLUMN main.price_history.offers IS 'Offers that day.';
COMMENT ON COLUMN main.price_history.usd_per_gpu_hour IS 'Cheapest of them in USD per GPU and hour.';
COMMENT ON COLUMN main.price_history.median_usd_per_gpu_hour IS 'Median of them in USD per GPU and hour.';
