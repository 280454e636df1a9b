CREATE TABLE main.workloads (
    workload VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    method VARCHAR NOT NULL CHECK (method IN ('full', 'lora', 'qlora', 'pretrain')),
    tokens DOUBLE NOT NULL CHECK (tokens > 0),
    examples DOUBLE,
    tokens_per_example DOUBLE,
    epochs DOUBLE,
    seq_len INTEGER NOT NULL CHECK (seq_len > 0),
    lora_rank INTEGER,
    max_gpus INTEGER NOT NULL CHECK (max_gpus > 0),
    max_hours DOUBLE CHECK (max_hours > 0),
    scenario BOOLEAN NOT NULL,
    note VARCHAR
);

COMMENT ON TABLE main.workloads IS 'The training jobs that are priced every day: models x methods x token budgets, and scenarios that people ask about by name. From catalog/workloads.yaml.';
COMMENT ON COLUMN main.workloads.workload IS 'Key, for example llama-3.1-8b-lora-100m.';
COMMENT ON COLUMN main.workloads.title IS 'The job in words.';
COMMENT ON COLUMN main.workloads.model IS 'Key into models.';
COMMENT ON COLUMN main.workloads.method IS 'How it is trained: full (all weights), lora (adapters), qlora (adapters on 4-bit weights) or pretrain (from scratch).';
COMMENT ON COLUMN main.workloads.tokens IS 'Tokens that pass through the model, all epochs together.';
COMMENT ON COLUMN main.workloads.examples IS 'Examples of the data set, where the job is counted in examples.';
COMMENT ON COLUMN main.workloads.tokens_per_example IS 'Tokens of one example.';
COMMENT ON COLUMN main.workloads.epochs IS 'Passes over the data set.';
COMMENT ON COLUMN main.workloads.seq_len IS 'Tokens of one packed sequence.';
COMMENT ON COLUMN main.workloads.lora_rank IS 'Rank of the adapters; null where there are none.';
COMMENT ON COLUMN main.workloads.max_gpus IS 'Most GPUs that its rankings use.';
COMMENT ON COLUMN main.workloads.max_hours IS 'Deadline in hours from renting to the finished job, where the job has one of its own, as a weekly job does; null where it has the default of any question (deadline_hours of cost_parameters). The deadline that a ranking keeps to is max_hours of cheapest_gpu_per_workload.';
COMMENT ON COLUMN main.workloads.scenario IS 'True for a scenario by name, false for a cell of the grid.';
COMMENT ON COLUMN main.workloads.note IS 'What the scenario is, and where it is from.';
