-- What users call: any relation with the columns of catalog/measured_runs.csv.

CREATE OR REPLACE MACRO memory_terms_of(jobs) AS TABLE
WITH _settings AS (
    SELECT * FROM settings_of(jobs)
),

_coefficients AS (
    SELECT * FROM memory_coefficients('_settings')
),

_scaled AS (
    SELECT * FROM scale_of('_coefficients')
)

SELECT * FROM memory_terms('_scaled');
COMMENT ON MACRO TABLE memory_terms_of IS
    'Every quantity behind memory_of, in bytes, without band and evidence: what the calibration fits.';

CREATE OR REPLACE MACRO speed_terms_of(jobs) AS TABLE
WITH _settings AS (
    SELECT * FROM settings_of(jobs)
),

_coefficients AS (
    SELECT * FROM speed_coefficients('_settings')
),

_scaled AS (
    SELECT * FROM scale_of('_coefficients')
)

SELECT * FROM speed_terms('_scaled');
COMMENT ON MACRO TABLE speed_terms_of IS
    'Every quantity behind speed_of, in seconds, without band and evidence: what the calibration fits.';

CREATE OR REPLACE MACRO memory_of(jobs) AS TABLE
WITH _terms AS (
    SELECT * FROM memory_terms_of(jobs)
),

_evidence AS (
    SELECT * FROM evidence_of('_terms', 'memory')
),

_ignored AS (
    SELECT * FROM ignored_columns(jobs, run_columns())
)

SELECT
    t.job, t.run_id, t.calibration, t.model, t.gpu, t.memory_metric,
    gib(t.on_gpu * t.weight_bytes_per_gpu) AS weights_gib,
    gib(t.adapter_bytes_per_gpu) AS adapter_gib,
    gib(t.on_gpu * t.gradient_bytes_per_gpu) AS gradients_gib,
    gib(t.on_gpu * t.optimizer_bytes_per_gpu) AS optimizer_gib,
    gib(t.on_gpu * t.step_copy_bytes_per_gpu) AS optimizer_copy_gib,
    gib(t.stored_bytes) AS activations_gib,
    gib(t.working_bytes) AS working_set_gib,
    gib(t.logits_bytes) AS logits_gib,
    gib(t.root_bytes + t.units_bytes) AS fsdp_units_gib,
    t.reserved_gib - t.allocated_gib AS fragmentation_gib,
    t.process_gib AS overhead_gib,
    t.allocated_gib, t.reserved_gib, t.peak_phase,
    t.memory_gib, t.memory_gib * b.low_ratio AS memory_gib_low,
    t.memory_gib * b.high_ratio AS memory_gib_high,
    t.needed_gib, t.usable_memory_gib, t.needed_gib <= t.usable_memory_gib AS fits,
    memory_evidence(e.evidence, t.is_proven) AS evidence, e.evidence_run,
    json_with(t.assumptions, i.ignored) AS assumptions
FROM _terms AS t
CROSS JOIN _ignored AS i
JOIN _evidence AS e
    ON e.calibration = t.calibration AND e.gpu = t.gpu AND e.method = t.method AND e.params = t.params_total
    AND e.gpu_count = t.gpu_count AND e.stack = t.stack AND e.seq_len = t.seq_len
    AND e.is_mixture = (t.experts > 1) AND e.weight_form = weight_form(t.method, t.quantization)
JOIN main.model_bands AS b
    ON b.calibration = t.calibration AND b.quantity = 'memory'
    AND b.method = t.method AND b.gpu_class = e.class
    AND b.evidence = memory_evidence(e.evidence, t.is_proven);
COMMENT ON MACRO TABLE memory_of IS
    'Peak memory per GPU of each run, GiB: its terms, allocated, reserved and in the row''s memory_metric (alloc, reserved, smi), the p10 to p90 band, and whether it fits usable memory.';

CREATE OR REPLACE MACRO speed_of(jobs) AS TABLE
WITH _terms AS (
    SELECT * FROM speed_terms_of(jobs)
),

_evidence AS (
    SELECT * FROM evidence_of('_terms', 'speed')
),

_ignored AS (
    SELECT * FROM ignored_columns(jobs, run_columns())
)

SELECT
    t.job, t.run_id, t.calibration, t.model, t.gpu,
    t.matmul_seconds, t.attention_seconds, t.traffic_seconds, t.logits_seconds,
    t.dequantize_seconds AS dequantization_seconds, t.host_exposed_seconds AS host_seconds,
    t.communication_seconds, t.offload_seconds, t.optimizer_seconds,
    t.host_per_step_seconds AS overhead_seconds, t.step_seconds,
    t.tokens_per_second_per_gpu,
    t.tokens_per_second_per_gpu * b.low_ratio AS tokens_per_second_per_gpu_low,
    t.tokens_per_second_per_gpu * b.high_ratio AS tokens_per_second_per_gpu_high,
    t.bottleneck,
    -- Model FLOPs utilization: 6 x the active linear parameters per token (4 with frozen weights), over the
    -- dense 16-bit peak.
    t.tokens_per_second_per_gpu * 2e0 * t.linear_active * t.product_passes / (t.dense_16bit_tflops * 1e12)
        AS mfu,
    e.evidence, e.evidence_run,
    json_with(t.assumptions, i.ignored) AS assumptions
FROM _terms AS t
CROSS JOIN _ignored AS i
JOIN _evidence AS e
    ON e.calibration = t.calibration AND e.gpu = t.gpu AND e.method = t.method AND e.params = t.params_total
    AND e.gpu_count = t.gpu_count AND e.stack = t.stack AND e.seq_len = t.seq_len
    AND e.is_mixture = (t.experts > 1) AND e.weight_form = weight_form(t.method, t.quantization)
JOIN main.model_bands AS b
    ON b.calibration = t.calibration AND b.quantity = 'speed'
    AND b.method = t.method AND b.gpu_class = e.class AND b.evidence = e.evidence;
COMMENT ON MACRO TABLE speed_of IS
    'Tokens per second per GPU of each run (packed sequences), the seconds of one micro-step term by term, the p10 to p90 band and the bottleneck.';
