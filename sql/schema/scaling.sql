CREATE TABLE main.scaling (
    workload VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    tokens_per_second DOUBLE NOT NULL,
    least_gpu_count INTEGER NOT NULL,
    speedup DOUBLE NOT NULL,
    efficiency DOUBLE NOT NULL,
    train_hours DOUBLE NOT NULL,
    source VARCHAR,
    hours DOUBLE,
    total_usd DECIMAL(18, 4),
    cost_ratio DOUBLE
);

COMMENT ON TABLE main.scaling IS 'For the scenarios: the effect of more GPUs of the same kind in one machine on hours and cost, on demand.';
COMMENT ON COLUMN main.scaling.workload IS 'Key into workloads.';
COMMENT ON COLUMN main.scaling.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.scaling.gpu_count IS 'GPUs that the job uses.';
COMMENT ON COLUMN main.scaling.tokens_per_second IS 'Speed of all GPUs together in tokens per second.';
COMMENT ON COLUMN main.scaling.least_gpu_count IS 'Fewest GPUs on which it fits: the base of the comparison.';
COMMENT ON COLUMN main.scaling.speedup IS 'Speed over the speed on that number of GPUs.';
COMMENT ON COLUMN main.scaling.efficiency IS 'Speed-up over the growth in GPUs; 1 is perfect scaling.';
COMMENT ON COLUMN main.scaling.train_hours IS 'tokens / tokens_per_second.';
COMMENT ON COLUMN main.scaling.source IS 'Source of the cheapest on-demand offer for that number; null where no source rents it.';
COMMENT ON COLUMN main.scaling.hours IS 'From renting to the finished job there.';
COMMENT ON COLUMN main.scaling.total_usd IS 'What the finished job costs there in USD, without taxes.';
COMMENT ON COLUMN main.scaling.cost_ratio IS 'That cost over the cost on the fewest GPUs; null where either has no price.';
