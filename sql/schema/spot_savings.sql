CREATE TABLE main.spot_savings (
    workload VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    spot_tier VARCHAR,
    on_demand_tier VARCHAR,
    spot_usd_per_hour DECIMAL(18, 8) NOT NULL,
    on_demand_usd_per_hour DECIMAL(18, 8) NOT NULL,
    price_saving_share DOUBLE NOT NULL,
    spot_total_usd DECIMAL(18, 4) NOT NULL,
    interruption_usd DECIMAL(18, 4) NOT NULL,
    on_demand_total_usd DECIMAL(18, 4) NOT NULL,
    cost_saving_share DOUBLE NOT NULL,
    spot_hours DOUBLE NOT NULL,
    on_demand_hours DOUBLE NOT NULL,
    checkpoint_interval_minutes DOUBLE,
    interruptions DOUBLE NOT NULL,
    hours_between_interruptions DOUBLE NOT NULL,
    break_even_hours_between_interruptions DOUBLE
);

COMMENT ON TABLE main.spot_savings IS 'For the scenarios: what spot saves. The spot price of a source against its on-demand price for the same GPU and number, first by the hour, then for the finished job with interruptions.';
COMMENT ON COLUMN main.spot_savings.workload IS 'Key into workloads.';
COMMENT ON COLUMN main.spot_savings.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.spot_savings.gpu_count IS 'GPUs that the job uses.';
COMMENT ON COLUMN main.spot_savings.node_count IS 'Machines that it runs on.';
COMMENT ON COLUMN main.spot_savings.source IS 'Key into sources.';
COMMENT ON COLUMN main.spot_savings.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.spot_savings.spot_tier IS 'Tier of the spot offer.';
COMMENT ON COLUMN main.spot_savings.on_demand_tier IS 'Tier of the on-demand offer.';
COMMENT ON COLUMN main.spot_savings.spot_usd_per_hour IS 'Spot price of everything rented, USD per hour.';
COMMENT ON COLUMN main.spot_savings.on_demand_usd_per_hour IS 'On-demand price of the same, USD per hour.';
COMMENT ON COLUMN main.spot_savings.price_saving_share IS 'Saving by the hour, as a share of the on-demand price.';
COMMENT ON COLUMN main.spot_savings.spot_total_usd IS 'The finished job on spot, interruptions included, in USD.';
COMMENT ON COLUMN main.spot_savings.interruption_usd IS 'What interruptions cost of that, in USD.';
COMMENT ON COLUMN main.spot_savings.on_demand_total_usd IS 'The finished job on demand, in USD.';
COMMENT ON COLUMN main.spot_savings.cost_saving_share IS 'Saving for the finished job, as a share of the on-demand cost; negative where spot is more expensive.';
COMMENT ON COLUMN main.spot_savings.spot_hours IS 'Hours to the finished job on spot, waits included.';
COMMENT ON COLUMN main.spot_savings.on_demand_hours IS 'Hours to the finished job on demand.';
COMMENT ON COLUMN main.spot_savings.checkpoint_interval_minutes IS 'Minutes between checkpoints that minimize the expected loss; null where every stop has a notice long enough for one.';
COMMENT ON COLUMN main.spot_savings.interruptions IS 'Expected number of interruptions.';
COMMENT ON COLUMN main.spot_savings.hours_between_interruptions IS 'Mean hours between interruptions of one machine that the cost assumes.';
COMMENT ON COLUMN main.spot_savings.break_even_hours_between_interruptions IS 'Mean hours between interruptions at which both cost the same: with more frequent interruptions, on demand is cheaper. 0 where spot is cheaper even with an interruption every minute; null where it never is.';
