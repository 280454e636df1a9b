CREATE TABLE main.trace_accuracy (
    run_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    recipe VARCHAR NOT NULL,
    is_identified BOOLEAN NOT NULL,
    model VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    quantity VARCHAR NOT NULL,
    measured_gib DOUBLE NOT NULL,
    traced_gib DOUBLE NOT NULL,
    error DOUBLE NOT NULL
);

COMMENT ON TABLE main.trace_accuracy IS 'Traced against measured memory, a row per run and quantity. No constant is fitted to these runs, except the context of a process.';
COMMENT ON COLUMN main.trace_accuracy.run_id IS 'Key into measured_runs.';
COMMENT ON COLUMN main.trace_accuracy.source IS 'Who published the run.';
COMMENT ON COLUMN main.trace_accuracy.recipe IS 'Recipe that was traced.';
COMMENT ON COLUMN main.trace_accuracy.is_identified IS 'Whether the publisher names the software and its settings well enough to run the same code.';
COMMENT ON COLUMN main.trace_accuracy.model IS 'Key into models.';
COMMENT ON COLUMN main.trace_accuracy.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.trace_accuracy.quantity IS 'forward, backward, optimizer: peak allocated in that phase; allocated, reserved: peak over the step; process: as the driver counts it.';
COMMENT ON COLUMN main.trace_accuracy.measured_gib IS 'Measured, GiB.';
COMMENT ON COLUMN main.trace_accuracy.traced_gib IS 'Traced, GiB; of a process with the context that the model assumes.';
COMMENT ON COLUMN main.trace_accuracy.error IS 'Traced over measured, minus 1.';
