CREATE TABLE main.cost_hours_pareto (
    workload VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    gpus_billed INTEGER NOT NULL,
    provider VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL,
    country VARCHAR,
    continent VARCHAR,
    term_days INTEGER,
    total_usd DECIMAL(18, 4) NOT NULL,
    hours DOUBLE NOT NULL,
    usd_per_hour_saved DOUBLE,
    meets_deadline BOOLEAN NOT NULL,
    verdict VARCHAR NOT NULL,
    fit_probability DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL
);

COMMENT ON TABLE main.cost_hours_pareto IS 'For each workload and price kind the ways to run it that no other way beats in both cost and hours, from the cheapest to the fastest: how much more it costs to finish sooner.';
COMMENT ON COLUMN main.cost_hours_pareto.workload IS 'Key into workloads.';
COMMENT ON COLUMN main.cost_hours_pareto.price_kind IS 'on_demand, flex_start, spot, reserved or serverless, never mixed.';
COMMENT ON COLUMN main.cost_hours_pareto.position IS '1 is the cheapest; the last is the fastest.';
COMMENT ON COLUMN main.cost_hours_pareto.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.cost_hours_pareto.gpu_count IS 'GPUs that the job uses.';
COMMENT ON COLUMN main.cost_hours_pareto.node_count IS 'Machines that it runs on.';
COMMENT ON COLUMN main.cost_hours_pareto.gpus_billed IS 'GPUs that are paid for.';
COMMENT ON COLUMN main.cost_hours_pareto.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.cost_hours_pareto.source IS 'Key into sources.';
COMMENT ON COLUMN main.cost_hours_pareto.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.cost_hours_pareto.tier_class IS 'What kind of renting tier is: dedicated (the provider''s own machines), community (private owners'' machines at the provider''s price), marketplace (each owner sets a price) or serverless.';
COMMENT ON COLUMN main.cost_hours_pareto.country IS 'Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.';
COMMENT ON COLUMN main.cost_hours_pareto.continent IS 'Its continent: africa, antarctica, asia, europe, north_america, oceania or south_america; also where only the continent is said.';
COMMENT ON COLUMN main.cost_hours_pareto.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.cost_hours_pareto.total_usd IS 'What the finished job costs in USD, without taxes.';
COMMENT ON COLUMN main.cost_hours_pareto.hours IS 'From renting to the finished job.';
COMMENT ON COLUMN main.cost_hours_pareto.usd_per_hour_saved IS 'Cost of each hour saved compared with the row before, in USD; null in the first row.';
COMMENT ON COLUMN main.cost_hours_pareto.meets_deadline IS 'Finished within the workload''s max_hours; the ways that are not are its longer waits.';
COMMENT ON COLUMN main.cost_hours_pareto.verdict IS 'fits or tight.';
COMMENT ON COLUMN main.cost_hours_pareto.fit_probability IS 'P(fits), at least 90%.';
COMMENT ON COLUMN main.cost_hours_pareto.evidence IS 'Evidence for the plan.';
