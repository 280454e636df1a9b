CREATE TABLE main.measured_phase_peaks (
    run_id VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    double_quant INTEGER NOT NULL,
    attention VARCHAR NOT NULL,
    after_load_gib DOUBLE,
    resident_gib DOUBLE,
    forward_gib DOUBLE,
    backward_gib DOUBLE,
    optimizer_step_gib DOUBLE,
    peak_allocated_gib DOUBLE NOT NULL,
    peak_reserved_gib DOUBLE NOT NULL,
    process_gib DOUBLE NOT NULL,
    context_gib DOUBLE NOT NULL,
    optimizer_state_gib DOUBLE,
    gradient_gib DOUBLE,
    trainable_params BIGINT,
    total_params BIGINT,
    step_seconds DOUBLE,
    source VARCHAR NOT NULL
);

COMMENT ON TABLE main.measured_phase_peaks IS 'Published peaks of GPU memory by phase of the training step, for some of measured_runs.';
COMMENT ON COLUMN main.measured_phase_peaks.run_id IS 'Key into measured_runs.';
COMMENT ON COLUMN main.measured_phase_peaks.precision IS 'Type that the run computed in: fp16 or bf16.';
COMMENT ON COLUMN main.measured_phase_peaks.double_quant IS '1 where the scales of 4-bit weights were quantized, too.';
COMMENT ON COLUMN main.measured_phase_peaks.attention IS 'Attention as transformers names it: eager or sdpa.';
COMMENT ON COLUMN main.measured_phase_peaks.after_load_gib IS 'Allocated after the model was loaded, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.resident_gib IS 'Allocated before the first step, with adapters, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.forward_gib IS 'Peak allocated in the forward pass, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.backward_gib IS 'Peak allocated in the backward pass, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.optimizer_step_gib IS 'Peak allocated in the optimizer step, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.peak_allocated_gib IS 'Peak allocated over the run, GiB: torch.cuda.max_memory_allocated.';
COMMENT ON COLUMN main.measured_phase_peaks.peak_reserved_gib IS 'Peak reserved over the run, GiB: torch.cuda.max_memory_reserved.';
COMMENT ON COLUMN main.measured_phase_peaks.process_gib IS 'Memory of the whole process, as the driver counts it, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.context_gib IS 'Of it beyond what torch reserved: the CUDA context, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.optimizer_state_gib IS 'Optimizer state, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.gradient_gib IS 'Gradients, GiB.';
COMMENT ON COLUMN main.measured_phase_peaks.trainable_params IS 'Parameters that trained.';
COMMENT ON COLUMN main.measured_phase_peaks.total_params IS 'All parameters, adapters included.';
COMMENT ON COLUMN main.measured_phase_peaks.step_seconds IS 'Seconds of one optimizer step.';
COMMENT ON COLUMN main.measured_phase_peaks.source IS 'Package and file that published the run.';
