CREATE TABLE main.ranking_history (
    day DATE NOT NULL,
    workload VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    objective VARCHAR NOT NULL CHECK (objective IN ('cost', 'time')),
    rank INTEGER NOT NULL,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    tier VARCHAR,
    term_days INTEGER,
    total_usd DECIMAL(18, 4) NOT NULL,
    hours DECIMAL(9, 2) NOT NULL
);

COMMENT ON TABLE main.ranking_history IS 'The rankings of each published day as they were published, the newest day included: the five best of each scenario, price kind and objective, and of every other workload the cheapest on demand. The whole ranking of a past day is made again by gpufare rebuild.';
COMMENT ON COLUMN main.ranking_history.day IS 'Day of the ranking.';
COMMENT ON COLUMN main.ranking_history.workload IS 'Key into workloads.';
COMMENT ON COLUMN main.ranking_history.price_kind IS 'Kind of price ranked: on_demand, flex_start, spot, reserved or serverless, never mixed.';
COMMENT ON COLUMN main.ranking_history.objective IS 'What the ranking is by: cost or time.';
COMMENT ON COLUMN main.ranking_history.rank IS '1 is the best.';
COMMENT ON COLUMN main.ranking_history.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.ranking_history.gpu_count IS 'GPUs that the job uses.';
COMMENT ON COLUMN main.ranking_history.node_count IS 'Machines that it runs on.';
COMMENT ON COLUMN main.ranking_history.source IS 'Key into sources.';
COMMENT ON COLUMN main.ranking_history.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.ranking_history.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.ranking_history.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.ranking_history.total_usd IS 'What was paid for the finished job in USD, by the model and the prices of that day.';
COMMENT ON COLUMN main.ranking_history.hours IS 'From renting to the finished job, to a hundredth of an hour.';
