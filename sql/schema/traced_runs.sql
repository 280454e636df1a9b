CREATE TABLE main.traced_runs (
    run_id VARCHAR NOT NULL,
    recipe VARCHAR NOT NULL,
    digest VARCHAR,
    is_identified BOOLEAN NOT NULL,
    versions VARCHAR,
    trainable_parameters BIGINT,
    resident_bytes BIGINT,
    forward_allocated_bytes BIGINT,
    backward_allocated_bytes BIGINT,
    optimizer_allocated_bytes BIGINT,
    allocated_bytes BIGINT,
    reserved_bytes BIGINT,
    problem VARCHAR
);

COMMENT ON TABLE main.traced_runs IS 'Memory of measured runs as traced without a GPU: the recipe that their publisher ran, on fake tensors.';
COMMENT ON COLUMN main.traced_runs.run_id IS 'Key into measured_runs.';
COMMENT ON COLUMN main.traced_runs.recipe IS 'The software stack that was traced: catalog/traced_stacks.yaml has its switches and the evidence.';
COMMENT ON COLUMN main.traced_runs.digest IS 'Names switches and shape: the same in runs that are traced alike.';
COMMENT ON COLUMN main.traced_runs.is_identified IS 'Whether the publisher names the software and its settings well enough to run the same code.';
COMMENT ON COLUMN main.traced_runs.versions IS 'Packages whose code was traced; the run itself may have had others.';
COMMENT ON COLUMN main.traced_runs.trainable_parameters IS 'Parameters that train.';
COMMENT ON COLUMN main.traced_runs.resident_bytes IS 'Allocated after an optimizer step: weights, adapters, optimizer state.';
COMMENT ON COLUMN main.traced_runs.forward_allocated_bytes IS 'Peak allocated in the forward pass.';
COMMENT ON COLUMN main.traced_runs.backward_allocated_bytes IS 'Peak allocated in the backward pass.';
COMMENT ON COLUMN main.traced_runs.optimizer_allocated_bytes IS 'Peak allocated in the optimizer step.';
COMMENT ON COLUMN main.traced_runs.allocated_bytes IS 'The largest of the three.';
COMMENT ON COLUMN main.traced_runs.reserved_bytes IS 'What the caching allocator takes from the driver, by replay.';
COMMENT ON COLUMN main.traced_runs.problem IS 'Why the run could not be traced; null where it was.';
