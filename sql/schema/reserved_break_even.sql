CREATE TABLE main.reserved_break_even (
    gpu_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    tier VARCHAR,
    term_days INTEGER,
    gpus_per_offer INTEGER NOT NULL,
    reserved_usd_per_gpu_hour DECIMAL(18, 8) NOT NULL,
    commitment_usd DECIMAL(18, 4),
    on_demand_usd_per_gpu_hour DECIMAL(18, 8),
    saving_share DOUBLE,
    break_even_hours_per_month DOUBLE,
    market_on_demand_usd_per_gpu_hour DECIMAL(18, 8),
    market_break_even_hours_per_month DOUBLE
);

COMMENT ON TABLE main.reserved_break_even IS 'When a reservation pays: hours of use per month from which a reserved GPU costs less than the same one on demand. Every hour of a term is paid for, used or not.';
COMMENT ON COLUMN main.reserved_break_even.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.reserved_break_even.source IS 'Key into sources.';
COMMENT ON COLUMN main.reserved_break_even.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.reserved_break_even.tier IS 'Tier of the reserved offer.';
COMMENT ON COLUMN main.reserved_break_even.term_days IS 'Length of the term in days; null where the source does not state it.';
COMMENT ON COLUMN main.reserved_break_even.gpus_per_offer IS 'GPUs that are reserved together.';
COMMENT ON COLUMN main.reserved_break_even.reserved_usd_per_gpu_hour IS 'Cheapest reserved price of that term, USD per GPU and hour.';
COMMENT ON COLUMN main.reserved_break_even.commitment_usd IS 'What the whole term costs for those GPUs, in USD.';
COMMENT ON COLUMN main.reserved_break_even.on_demand_usd_per_gpu_hour IS 'Cheapest on-demand price of the same source and GPU, USD per GPU and hour; null where it has none.';
COMMENT ON COLUMN main.reserved_break_even.saving_share IS 'Saving at full use, as a share of that price.';
COMMENT ON COLUMN main.reserved_break_even.break_even_hours_per_month IS 'Hours of use per month from which the reservation is cheaper; more hours than a month has where it never is.';
COMMENT ON COLUMN main.reserved_break_even.market_on_demand_usd_per_gpu_hour IS 'Cheapest on-demand price of any source, USD per GPU and hour.';
COMMENT ON COLUMN main.reserved_break_even.market_break_even_hours_per_month IS 'The same against the cheapest on-demand price of any source.';
