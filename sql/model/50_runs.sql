-- What users call: any relation with the columns of catalog/measured_runs.csv.

create or replace macro run_columns() as ['job', 'run_id', 'calibration', 'model', 'gpu', 'gpu_count', 'node_count', 'node_network_gbps', 'method', 'quantization', 'kbit_upcast',
    'lora_rank', 'lora_targets', 'adapter_bytes', 'training_precision', 'weight_bytes', 'fp8', 'optimizer', 'sharding', 'tensor_parallel',
    'pipeline_parallel', 'micro_batch', 'seq_len', 'grad_accum', 'checkpointing', 'flash_attention', 'stack', 'loss_kernel', 'offload',
    'memory_metric', 'carried', 'source', 'tier', 'note', 'out_of_memory', 'measured_memory_gib', 'measured_tokens_per_second_per_gpu'];
comment on macro run_columns is 'The columns of a relation of runs that are read, or known to be no settings.';

create or replace macro memory_terms_of(jobs) as table
with _settings as (select * from settings_of(jobs)),
_coefficients as (select * from memory_coefficients('_settings')),
_scaled as (select * from scale_of('_coefficients'))
select * from memory_terms('_scaled');
comment on macro table memory_terms_of is 'Every quantity behind memory_of, in bytes, without band and evidence: what the calibration fits.';

create or replace macro speed_terms_of(jobs) as table
with _settings as (select * from settings_of(jobs)),
_coefficients as (select * from speed_coefficients('_settings')),
_scaled as (select * from scale_of('_coefficients'))
select * from speed_terms('_scaled');
comment on macro table speed_terms_of is 'Every quantity behind speed_of, in seconds, without band and evidence: what the calibration fits.';

create or replace macro memory_of(jobs) as table
with _terms as (select * from memory_terms_of(jobs)),
_evidence as (select * from evidence_of('_terms')),
_ignored as (select * from ignored_columns(jobs, run_columns()))
select t.job, t.run_id, t.calibration, t.model, t.gpu, t.memory_metric,
    on_gpu * weight_bytes_per_gpu / 1073741824e0 as weights_gib,
    adapter_bytes_per_gpu / 1073741824e0 as adapter_gib,
    on_gpu * gradient_bytes_per_gpu / 1073741824e0 as gradients_gib,
    on_gpu * optimizer_bytes_per_gpu / 1073741824e0 as optimizer_gib,
    on_gpu * step_copy_bytes_per_gpu / 1073741824e0 as optimizer_copy_gib,
    stored_bytes / 1073741824e0 as activations_gib,
    working_bytes / 1073741824e0 as working_set_gib,
    logits_bytes / 1073741824e0 as logits_gib,
    (root_bytes + units_bytes) / 1073741824e0 as fsdp_units_gib,
    reserved_gib - allocated_gib as fragmentation_gib,
    process_gib as overhead_gib,
    allocated_gib, reserved_gib, peak_phase,
    memory_gib, memory_gib * b.low_ratio as memory_gib_low, memory_gib * b.high_ratio as memory_gib_high,
    needed_gib, usable_memory_gib, needed_gib <= usable_memory_gib as fits,
    e.evidence, e.evidence_run, concat_ws('; ', nullif(assumptions, ''), i.ignored) as assumptions
from _terms t
cross join _ignored i
join _evidence e on e.calibration = t.calibration and e.gpu = t.gpu and e.method = t.method and e.params = t.params_total and e.gpu_count = t.gpu_count
join main.model_bands b on b.quantity = 'memory' and b.method = t.method and b.gpu_class = e.class and b.evidence = e.evidence;
comment on macro table memory_of is
    'Peak memory per GPU of each run, GiB: its terms, allocated, reserved and in the row''s memory_metric (alloc, reserved, smi), the p10 to p90 band, and whether it fits usable memory.';

create or replace macro speed_of(jobs) as table
with _terms as (select * from speed_terms_of(jobs)),
_evidence as (select * from evidence_of('_terms')),
_ignored as (select * from ignored_columns(jobs, run_columns()))
select t.job, t.run_id, t.calibration, t.model, t.gpu,
    matmul_seconds, attention_seconds, traffic_seconds, logits_seconds, dequantize_seconds as dequantization_seconds,
    host_exposed_seconds as host_seconds, communication_seconds, offload_seconds, optimizer_seconds, host_per_step_seconds as overhead_seconds,
    step_seconds, tokens_per_second_per_gpu,
    tokens_per_second_per_gpu * b.low_ratio as tokens_per_second_per_gpu_low, tokens_per_second_per_gpu * b.high_ratio as tokens_per_second_per_gpu_high,
    bottleneck,
    -- Model FLOPs utilization: 6 x the active linear parameters per token (4 with frozen weights), over the dense 16-bit peak.
    tokens_per_second_per_gpu * 2e0 * linear_active * (case when is_full then 3e0 else 2e0 end) / (coalesce(bf16_dense_tflops, fp16_dense_tflops) * 1e12) as mfu,
    e.evidence, e.evidence_run, concat_ws('; ', nullif(assumptions, ''), i.ignored) as assumptions
from _terms t
cross join _ignored i
join _evidence e on e.calibration = t.calibration and e.gpu = t.gpu and e.method = t.method and e.params = t.params_total and e.gpu_count = t.gpu_count
join main.model_bands b on b.quantity = 'speed' and b.method = t.method and b.gpu_class = e.class and b.evidence = e.evidence;
comment on macro table speed_of is
    'Tokens per second per GPU of each run (packed sequences), the seconds of one micro-step term by term, the p10 to p90 band and the bottleneck.';
