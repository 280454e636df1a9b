CREATE TABLE main.price_changes (
    day DATE NOT NULL,
    gpu_id VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    tier VARCHAR,
    usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    previous_usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    change_usd DECIMAL(18, 8) NOT NULL,
    change_share DOUBLE NOT NULL,
    previous_day DATE NOT NULL,
    previous_since DATE NOT NULL,
    current BOOLEAN NOT NULL
);

COMMENT ON TABLE main.price_changes IS 'Price changes: each day on which the cheapest price of a source for a GPU differs from the price of its accepted day before.';
COMMENT ON COLUMN main.price_changes.day IS 'First day of the new price.';
COMMENT ON COLUMN main.price_changes.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.price_changes.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.price_changes.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.price_changes.source IS 'Key into sources.';
COMMENT ON COLUMN main.price_changes.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.price_changes.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.price_changes.usd_per_gpu_hour IS 'The new price in USD per GPU and hour.';
COMMENT ON COLUMN main.price_changes.previous_usd_per_gpu_hour IS 'The price before in USD per GPU and hour.';
COMMENT ON COLUMN main.price_changes.change_usd IS 'New less previous, in USD.';
COMMENT ON COLUMN main.price_changes.change_share IS 'That change over the previous price; -0.1 is ten percent cheaper.';
COMMENT ON COLUMN main.price_changes.previous_day IS 'Last day of the price before.';
COMMENT ON COLUMN main.price_changes.previous_since IS 'First day of the price before.';
COMMENT ON COLUMN main.price_changes.current IS 'Whether it is still the price.';
