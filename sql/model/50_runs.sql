-- What users call: any relation with the columns of catalog/measured_runs.csv.

create or replace macro memory_of(jobs) as table
with _settings as (select * from settings_of(jobs)),
_coefficients as (select * from memory_coefficients('_settings')),
_scaled as (select * from scale_of('_coefficients')),
_terms as (select * from memory_terms('_scaled'))
select job, run_id, fit, model, gpu, memory_metric,
    on_gpu * weight_bytes_held / 1073741824e0 as weights_gib,
    adapter_bytes_held / 1073741824e0 as adapter_gib,
    on_gpu * gradient_bytes_held / 1073741824e0 as gradients_gib,
    on_gpu * optimizer_bytes_held / 1073741824e0 as optimizer_gib,
    on_gpu * step_copy_bytes_held / 1073741824e0 as optimizer_copy_gib,
    stored_bytes / 1073741824e0 as activations_gib,
    working_bytes / 1073741824e0 as working_set_gib,
    logits_bytes / 1073741824e0 as logits_gib,
    (root_bytes + units_bytes) / 1073741824e0 as fsdp_units_gib,
    reserved_gib - allocated_gib as fragmentation_gib,
    process_gib as overhead_gib,
    allocated_gib, reserved_gib, peak_phase, memory_gib, needed_gib, usable_memory_gib,
    needed_gib <= usable_memory_gib as fits, assumptions
from _terms;

create or replace macro speed_of(jobs) as table
with _settings as (select * from settings_of(jobs)),
_coefficients as (select * from speed_coefficients('_settings')),
_scaled as (select * from scale_of('_coefficients')),
_terms as (select * from speed_terms('_scaled'))
select job, run_id, fit, model, gpu,
    matmul_seconds, attention_seconds, traffic_seconds, logits_seconds, dequantize_seconds as dequantization_seconds,
    host_exposed_seconds as host_seconds, communication_seconds, offload_seconds, optimizer_seconds, host_per_step_seconds as overhead_seconds,
    step_seconds, tokens_per_second_per_gpu, bottleneck, assumptions
from _terms;
