-- The macros for users, which take any relation with the columns of catalog/measured_runs.csv.

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
    'Every quantity behind memory_of, in bytes, without the band or the evidence, for use in the calibration.';

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
    'Every quantity behind speed_of, in seconds, without the band or the evidence, for use in the calibration.';

CREATE OR REPLACE MACRO memory_of(jobs, with_own := TRUE) AS TABLE
WITH _terms AS (
    SELECT * FROM memory_terms_of(jobs)
),

_own AS (
    SELECT * FROM with_own_runs('_terms', with_own := with_own)
),

_judged AS (
    SELECT * FROM memory_evidence('_own')
)

SELECT
    job, run_id, calibration, model, gpu, memory_metric,
    gib(on_gpu * weight_bytes_per_gpu) AS weights_gib,
    gib(adapter_bytes_per_gpu) AS adapter_gib,
    gib(on_gpu * gradient_bytes_per_gpu) AS gradients_gib,
    gib(on_gpu * optimizer_bytes_per_gpu) AS optimizer_gib,
    gib(on_gpu * step_copy_bytes_per_gpu) AS optimizer_copy_gib,
    gib(stored_bytes) AS activations_gib,
    gib(working_bytes) AS working_set_gib,
    gib(logits_bytes) AS logits_gib,
    gib(root_bytes + units_bytes) AS fsdp_units_gib,
    reserved_gib - allocated_gib AS fragmentation_gib,
    process_gib AS overhead_gib,
    allocated_gib, reserved_gib, peak_phase,
    j.memory_gib * own_factor(own_memory) AS memory_gib,
    j.memory_gib * own_factor(own_memory) * narrowed(low_ratio, own_memory) AS memory_gib_low,
    j.memory_gib * own_factor(own_memory) * narrowed(high_ratio, own_memory) AS memory_gib_high,
    j.needed_gib * own_factor(own_memory) AS needed_gib, usable_memory_gib,
    j.needed_gib * own_factor(own_memory) <= usable_memory_gib AS fits,
    own_evidence(evidence, own_memory) AS evidence,
    json_with(assumptions, nullif(concat_ws(',', own_members(own_memory, NULL), ignored), '')) AS assumptions
FROM with_band('_judged', 'memory') AS j
CROSS JOIN ignored_columns(jobs, run_columns());
COMMENT ON MACRO TABLE memory_of IS
    'The peak memory of each run in GiB per GPU: its terms; the allocated memory, the reserved memory, and the memory according to the row''s memory_metric (alloc, reserved or smi); the p10 to p90 band; and whether the run fits in usable memory. Own runs correct it (own_corrections), unless with_own is false.';

CREATE OR REPLACE MACRO speed_of(jobs, with_own := TRUE) AS TABLE
WITH _terms AS (
    SELECT * FROM speed_terms_of(jobs)
),

_own AS (
    SELECT * FROM with_own_runs('_terms', with_own := with_own)
),

_judged AS (
    SELECT * FROM speed_evidence('_own')
)

SELECT
    job, run_id, calibration, model, gpu,
    matmul_seconds, attention_seconds, traffic_seconds, logits_seconds,
    dequantize_seconds AS dequantization_seconds, host_exposed_seconds AS host_seconds,
    communication_seconds, offload_seconds, optimizer_seconds,
    host_per_step_seconds AS overhead_seconds, step_seconds,
    j.tokens_per_second_per_gpu * own_factor(own_speed) AS tokens_per_second_per_gpu,
    j.tokens_per_second_per_gpu * own_factor(own_speed) * narrowed(low_ratio, own_speed)
        AS tokens_per_second_per_gpu_low,
    j.tokens_per_second_per_gpu * own_factor(own_speed) * narrowed(high_ratio, own_speed)
        AS tokens_per_second_per_gpu_high,
    bottleneck,
    -- Model FLOPs utilization: 6 x the active linear parameters per token (4 x with frozen weights), divided
    -- by the dense 16-bit peak.
    j.tokens_per_second_per_gpu * own_factor(own_speed) * 2e0 * linear_active * product_passes
        / (dense_16bit_tflops * 1e12) AS mfu,
    own_evidence(evidence, own_speed) AS evidence, evidence_run,
    json_with(assumptions, nullif(concat_ws(',', own_members(NULL, own_speed), ignored), '')) AS assumptions
FROM with_band('_judged', 'speed') AS j
CROSS JOIN ignored_columns(jobs, run_columns());
COMMENT ON MACRO TABLE speed_of IS
    'The tokens per second per GPU of each run (with packed sequences), the seconds of one micro-step term by term, the p10 to p90 band, and the bottleneck. Own runs correct it (own_corrections), unless with_own is false.';
