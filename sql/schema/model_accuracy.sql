CREATE TABLE main.model_accuracy (
    quantity VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    tier VARCHAR,
    model VARCHAR NOT NULL,
    params_billion DOUBLE,
    model_size VARCHAR,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER,
    method VARCHAR,
    stack VARCHAR,
    measured DOUBLE,
    predicted DOUBLE,
    error DOUBLE,
    predicted_held_out DOUBLE,
    error_held_out DOUBLE,
    low_held_out DOUBLE,
    high_held_out DOUBLE,
    in_band BOOLEAN,
    evidence_held_out VARCHAR,
    in_test_half BOOLEAN,
    error_split DOUBLE,
    ran_out_of_memory BOOLEAN,
    predicted_to_fit BOOLEAN
);

COMMENT ON TABLE main.model_accuracy IS 'Every published run that the model is calibrated on: the measurement, the model''s prediction, and its prediction with constants fitted without the run''s source and all others of its family (held out).';
COMMENT ON COLUMN main.model_accuracy.quantity IS 'memory (GiB per GPU, in the metric that the run reports) or speed (tokens per second and GPU).';
COMMENT ON COLUMN main.model_accuracy.run_id IS 'Key into measured_runs.';
COMMENT ON COLUMN main.model_accuracy.source IS 'Key into measured_sources: who published it.';
COMMENT ON COLUMN main.model_accuracy.family IS 'Sources of one lab, or that share figures: held out together.';
COMMENT ON COLUMN main.model_accuracy.tier IS 'Trust in the source: A or B.';
COMMENT ON COLUMN main.model_accuracy.model IS 'Key into models.';
COMMENT ON COLUMN main.model_accuracy.params_billion IS 'Parameters in billions.';
COMMENT ON COLUMN main.model_accuracy.model_size IS 'Class of size, for summaries.';
COMMENT ON COLUMN main.model_accuracy.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.model_accuracy.gpu_count IS 'GPUs of the run.';
COMMENT ON COLUMN main.model_accuracy.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.model_accuracy.stack IS 'Software stack.';
COMMENT ON COLUMN main.model_accuracy.measured IS 'The published value; null where the run failed out of memory.';
COMMENT ON COLUMN main.model_accuracy.predicted IS 'The model''s prediction with the constants that answers use.';
COMMENT ON COLUMN main.model_accuracy.error IS 'predicted / measured - 1.';
COMMENT ON COLUMN main.model_accuracy.predicted_held_out IS 'The prediction with constants fitted without any run of this family.';
COMMENT ON COLUMN main.model_accuracy.error_held_out IS 'Its error.';
COMMENT ON COLUMN main.model_accuracy.low_held_out IS 'p10 of the band around the held-out prediction.';
COMMENT ON COLUMN main.model_accuracy.high_held_out IS 'p90 of that band.';
COMMENT ON COLUMN main.model_accuracy.in_band IS 'Whether the measurement is in it.';
COMMENT ON COLUMN main.model_accuracy.evidence_held_out IS 'Distance from the runs of the other families: measured, traced (memory only), interpolated or extrapolated.';
COMMENT ON COLUMN main.model_accuracy.in_test_half IS 'Whether the run is in the half of the fixed split that is not fitted.';
COMMENT ON COLUMN main.model_accuracy.error_split IS 'Error of the fixed split, for runs of the test half.';
COMMENT ON COLUMN main.model_accuracy.ran_out_of_memory IS 'Whether the run failed out of memory.';
COMMENT ON COLUMN main.model_accuracy.predicted_to_fit IS 'Whether the held-out model predicts that the run fits.';
