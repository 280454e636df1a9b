CREATE TABLE main.price_list (
    gpu_id VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    usd_per_hour DECIMAL(18, 8) NOT NULL,
    gpu_count DOUBLE NOT NULL,
    term_days INTEGER,
    provider VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL,
    region VARCHAR,
    country VARCHAR,
    instance_type VARCHAR
);

COMMENT ON TABLE main.price_list IS 'The ranked offers of offers_latest in the columns that a price list has, by GPU, price kind and price: what is looked up most, in the fewest columns.';
COMMENT ON COLUMN main.price_list.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.price_list.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.price_list.usd_per_gpu_hour IS 'Price in USD per GPU and hour.';
COMMENT ON COLUMN main.price_list.usd_per_hour IS 'Price of the whole offer in USD per hour.';
COMMENT ON COLUMN main.price_list.gpu_count IS 'GPUs of the whole offer; a fraction for a slice.';
COMMENT ON COLUMN main.price_list.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.price_list.provider IS 'Who rents the machine out.';
COMMENT ON COLUMN main.price_list.source IS 'Key into sources.';
COMMENT ON COLUMN main.price_list.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.price_list.tier_class IS 'What kind of renting tier is: dedicated, community, marketplace or serverless.';
COMMENT ON COLUMN main.price_list.region IS 'Location of the machine, in the source''s words.';
COMMENT ON COLUMN main.price_list.country IS 'Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.';
COMMENT ON COLUMN main.price_list.instance_type IS 'The source''s own name of the machine; null where it sells GPUs and not machines.';
