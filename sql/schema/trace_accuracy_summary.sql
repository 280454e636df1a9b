CREATE TABLE main.trace_accuracy_summary (
    source VARCHAR NOT NULL,
    is_identified BOOLEAN NOT NULL,
    quantity VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    median_error DOUBLE NOT NULL,
    mean_error DOUBLE NOT NULL,
    largest_error DOUBLE NOT NULL,
    bias DOUBLE NOT NULL,
    within_3_percent BIGINT NOT NULL,
    beyond_10_percent BIGINT NOT NULL
);

COMMENT ON TABLE main.trace_accuracy_summary IS 'Traced against measured memory by source and quantity.';
COMMENT ON COLUMN main.trace_accuracy_summary.source IS 'Who published the runs.';
COMMENT ON COLUMN main.trace_accuracy_summary.is_identified IS 'Whether the publisher names the software and its settings well enough to run the same code.';
COMMENT ON COLUMN main.trace_accuracy_summary.quantity IS 'forward, backward, optimizer, allocated, reserved or process: see trace_accuracy.';
COMMENT ON COLUMN main.trace_accuracy_summary.runs IS 'Runs compared.';
COMMENT ON COLUMN main.trace_accuracy_summary.median_error IS 'Median of the absolute error, as a share of what was measured.';
COMMENT ON COLUMN main.trace_accuracy_summary.mean_error IS 'Mean of the absolute error.';
COMMENT ON COLUMN main.trace_accuracy_summary.largest_error IS 'Largest absolute error.';
COMMENT ON COLUMN main.trace_accuracy_summary.bias IS 'Median of the signed error: above 0, traces are too large.';
COMMENT ON COLUMN main.trace_accuracy_summary.within_3_percent IS 'Runs whose error is at most 3%.';
COMMENT ON COLUMN main.trace_accuracy_summary.beyond_10_percent IS 'Runs whose error is above 10%.';
