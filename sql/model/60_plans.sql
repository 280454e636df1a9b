-- The planner: for a workload and a GPU, the settings that finish fastest among those that fit.

create or replace macro plan_variants(jobs) as table
with _template as (
    select null::varchar as job, null::varchar as calibration, null::varchar as model, null::varchar as method, null::double as seq_len,
        null::double as lora_rank, null::varchar as lora_targets, null::varchar as quantization,
        null::double as micro_batch, null::varchar as checkpointing, null::varchar as stack, null::varchar as optimizer,
        null::varchar as training_precision, null::double as max_gpus, null::double as global_batch_tokens, null::double as fp8,
        null::double as flash_attention, null::varchar as sharding, null::varchar as offload
    where false
),
_given as (from _template union all by name from query_table(jobs)),
_workloads as (
    select coalesce(job::varchar, concat_ws(' ', model, method, seq_len)) as job, coalesce(calibration, 'all') as calibration, model, method,
        coalesce(seq_len::double, 2048e0) as seq_len, lora_rank::double as lora_rank, nullif(lora_targets, '') as lora_targets,
        case when method = 'qlora' then coalesce(quantization, 'nf4dq') else 'none' end as quantization,
        micro_batch::double as micro_batch_wanted, checkpointing as checkpointing_wanted, coalesce(stack, 'liger') as stack,
        coalesce(optimizer, 'adamw_fused') as optimizer, training_precision, coalesce(max_gpus::double, 64e0) as max_gpus,
        coalesce(global_batch_tokens::double, case when method = 'pretrain' then 524288e0 else 131072e0 end) as global_batch_tokens,
        coalesce(fp8::double, 0e0) as fp8, coalesce(flash_attention::double, 1e0) as flash_attention, sharding as sharding_wanted, offload as offload_wanted,
        concat_ws('; ',
            case when seq_len is null then 'seq_len: 2048' end,
            case when method in ('lora', 'qlora') and lora_rank is null then 'lora_rank: 16' end,
            case when method in ('lora', 'qlora') and nullif(lora_targets, '') is null then 'lora_targets: all linear layers' end,
            case when method = 'qlora' and quantization is null then 'quantization: nf4dq' end,
            case when stack is null then 'stack: liger (fused kernels)' end,
            case when optimizer is null then 'optimizer: adamw_fused' end,
            case when training_precision is null then 'training_precision: ' || case when method = 'pretrain' then 'amp' else 'bf16' end || ', fp16 where the GPU has no bf16' end,
            case when global_batch_tokens is null then 'global_batch_tokens: ' || case when method = 'pretrain' then '524288' else '131072' end end,
            case when max_gpus is null then 'max_gpus: 64' end,
            'packed sequences'
        ) as plan_assumptions
    from _given
),
_shardings(variant, sharding, offload, smallest, largest, adapters_only) as (
    values (0, 'none', '', 1, 1, false), (1, 'ddp', '', 2, 64, false), (2, 'zero2', '', 2, 64, false), (3, 'fsdp', '', 2, 64, false), (4, 'fsdp', 'cpu', 2, 8, false)
),
_checkpointings(level, checkpointing) as (values (0, 'none'), (1, 'sac'), (2, 'full')),
_sizes as (
    select list({'gpus': gpus, 'step': step, 'micro_batch': micro_batch} order by gpus, step) as sizes
    from (values (1e0), (2e0), (4e0), (8e0), (16e0), (32e0), (64e0)) c(gpus),
        (values (0, 1e0), (1, 2e0), (2, 4e0), (3, 8e0), (4, 16e0), (5, 32e0), (6, 64e0)) b(step, micro_batch)
)
select w.job, w.job as run_id, w.calibration, w.model, w.method, w.seq_len, w.lora_rank, w.lora_targets, w.quantization, 0e0 as kbit_upcast,
    w.stack, w.optimizer, w.fp8, w.flash_attention, g.gpu_id as gpu, 1e0 as gpu_count, s.sharding, s.offload, c.checkpointing,
    case when w.training_precision is not null then w.training_precision
        when g.bf16_dense_tflops is null then 'fp16' when w.method = 'pretrain' then 'amp' else 'bf16' end as training_precision,
    'smi' as memory_metric,
    {
        'micro_batch_wanted': w.micro_batch_wanted, 'global_batch_tokens': w.global_batch_tokens, 'plan_assumptions': w.plan_assumptions,
        'variant': s.variant * 3 + c.level, 'has_nvlink': g.nvlink_gb_s is not null,
        -- Nodes are joined only where data centres do so: cards sold for servers.
        'sizes': list_filter(z.sizes, lambda n: n.gpus between s.smallest and s.largest and n.gpus <= w.max_gpus
            and (n.gpus <= g.max_gpus_per_node or g.segment in ('datacenter', 'accelerator'))
            and (n.step = 0 or w.micro_batch_wanted is null and n.micro_batch * w.seq_len * n.gpus <= w.global_batch_tokens)),
        'unsupported': case when g.architecture in ('Kepler', 'Maxwell', 'Pascal') then 'current frameworks no longer support this architecture'
        when w.fp8 = 1 and g.fp8_dense_tflops is null then 'no fp8 on this GPU'
        when w.training_precision in ('bf16', 'amp', 'deepspeed_bf16') and g.bf16_dense_tflops is null then 'no bf16 on this GPU'
        when w.method = 'qlora' and g.vendor = 'intel' then 'no 4-bit kernels for this vendor' end
    } as carried
from _workloads w, main.gpus g, _shardings s, _checkpointings c, _sizes z
where g.has_full_specs
    and (w.checkpointing_wanted is null or w.checkpointing_wanted = c.checkpointing)
    and (w.sharding_wanted is null or w.sharding_wanted = s.sharding or s.sharding = 'none')
    and (w.offload_wanted is null or w.offload_wanted = s.offload)
    -- Offloading was measured with frozen weights only: an optimizer step on the host is planned on request, not proposed.
    and (s.offload = '' or w.method in ('lora', 'qlora') or w.offload_wanted = s.offload)
    and not (w.method in ('lora', 'qlora') and s.sharding = 'zero2');
comment on macro table plan_variants is
    'Every workload with every GPU, sharding, offload and checkpointing, as settings of a run; defaults filled and named in plan_assumptions.';

create or replace macro candidates_for(jobs) as table
with _variants as (select * from plan_variants(jobs)),
_settings as (select * exclude (carried), unnest(carried) from settings_of('_variants')),
_memory as (select * from memory_coefficients('_settings')),
_speed as (select * from speed_coefficients('_memory')),
_unnested as (select *, unnest(sizes) as size from _speed),
_sized as (
    select * replace (
            size.gpus as gpu_count, ceil(size.gpus / max_gpus_per_node) as node_count,
            case when has_nvlink then node_network_gbps else 400e0 end as node_network_gbps,
            coalesce(micro_batch_wanted, size.micro_batch) as micro_batch,
            greatest(1e0, round(global_batch_tokens / (coalesce(micro_batch_wanted, size.micro_batch) * seq_len * size.gpus))) as grad_accum
        ),
        variant * 7 + size.step as candidate
    from _unnested
),
_scaled as (select * from scale_of('_sized')),
_fitted as (select * from memory_terms('_scaled'))
select * from speed_terms('_fitted');
comment on macro table candidates_for is
    'Every candidate of a workload, evaluated and not pruned: GPU x count x sharding x offload x checkpointing x micro-batch.';

create or replace macro plans_for(jobs) as table
with _candidates as (select * from candidates_for(jobs)),
_scored as (
    select *,
        -- Candidates that fit with room beat those that fit tightly, those beat the rest; then speed (or least memory); then the lower number.
        case when needed_gib * fit_safety_ratio <= usable_memory_gib then 2 when needed_gib <= usable_memory_gib then 1 else 0 end as fit_tier,
        case when fit_tier = 0 then greatest(0e0, 100000e0 - needed_gib) else tokens_per_second_per_gpu * gpu_count end as merit,
        (fit_tier::bigint << 58) + (least(merit * 1024e0, 1e14)::bigint << 10) + (1023 - candidate) as score
    from _candidates
),
_best as (
    select job, gpu as gpu_id, gpu_count::int as gpu_count, node_count::int as node_count,
        -- The same for all candidates of a job and GPU.
        any_value(calibration) as calibration, any_value(model) as model, any_value(method) as method, any_value(seq_len)::int as seq_len,
        any_value(lora_rank)::int as lora_rank, any_value(lora_targets) as lora_targets, any_value(params_total) as params_total,
        any_value(params_linear) as params_linear, any_value(quantization) as quantization, any_value(optimizer) as optimizer,
        any_value(training_precision) as training_precision, any_value(stack) as stack, any_value(node_network_gbps) as node_network_gbps,
        any_value(usable_memory_gib) as usable_memory_gib, any_value(plan_assumptions) as plan_assumptions, any_value(unsupported) as unsupported,
        -- What a checkpoint to resume from holds, and what is kept at the end.
        any_value(case when is_full then params_total * (full_weight_bytes + optimizer_bytes) else adapter_params * (adapter_bytes + optimizer_bytes) end)
            / 1073741824e0 as training_state_gib,
        any_value(case when is_full then params_total * 2e0 else adapter_params * adapter_bytes end) / 1073741824e0 as result_gib,
        arg_max({
            'candidate': candidate, 'micro_batch': micro_batch, 'grad_accum': grad_accum, 'fit_tier': fit_tier,
            'memory_gib': memory_gib, 'needed_gib': needed_gib, 'tokens_per_second_per_gpu': tokens_per_second_per_gpu,
            'on_gpu': on_gpu, 'weight_bytes_per_gpu': weight_bytes_per_gpu, 'adapter_bytes_per_gpu': adapter_bytes_per_gpu,
            'gradient_bytes_per_gpu': gradient_bytes_per_gpu, 'optimizer_bytes_per_gpu': optimizer_bytes_per_gpu, 'step_copy_bytes_per_gpu': step_copy_bytes_per_gpu,
            'stored_bytes': stored_bytes, 'working_bytes': working_bytes, 'logits_bytes': logits_bytes, 'gathered_units_bytes': root_bytes + units_bytes,
            'fragmentation_gib': reserved_gib - allocated_gib, 'process_gib': process_gib,
            'loss_phase_bytes': loss_phase_bytes, 'backward_start_bytes': backward_start_bytes, 'backward_end_bytes': backward_end_bytes,
            'optimizer_phase_bytes': optimizer_phase_bytes,
            'matmul_seconds': matmul_seconds, 'attention_seconds': attention_seconds, 'traffic_seconds': traffic_seconds, 'logits_seconds': logits_seconds,
            'dequantize_seconds': dequantize_seconds, 'host_exposed_seconds': host_exposed_seconds, 'communication_seconds': communication_seconds,
            'offload_seconds': offload_seconds, 'optimizer_seconds': optimizer_seconds, 'host_per_step_seconds': host_per_step_seconds, 'step_seconds': step_seconds
        }, score) as c
    from _scored group by job, gpu, gpu_count, node_count
),
_needs as (select calibration, gpu_id as gpu, method, params_total, gpu_count from _best),
_evidence as (select * from evidence_of('_needs')),
_ignored as (
    select * from ignored_columns(jobs, ['job', 'calibration', 'model', 'method', 'seq_len', 'lora_rank', 'lora_targets', 'quantization', 'micro_batch', 'checkpointing',
        'stack', 'optimizer', 'training_precision', 'max_gpus', 'global_batch_tokens', 'fp8', 'flash_attention', 'sharding', 'offload'])
),
_shardings(number, sharding, offload) as (values (0, 'none', ''), (1, 'ddp', ''), (2, 'zero2', ''), (3, 'fsdp', ''), (4, 'fsdp', 'cpu'))
select p.job, p.model, p.method, p.seq_len, p.lora_rank, p.lora_targets, p.gpu_id, p.gpu_count, p.node_count,
    case when p.node_count > 1 then p.node_network_gbps end as node_network_gbps,
    c.micro_batch::int as micro_batch, c.grad_accum::int as grad_accum,
    case c.candidate // 7 % 3 when 0 then 'none' when 1 then 'sac' else 'full' end as checkpointing, s.sharding, s.offload,
    p.quantization, p.optimizer, p.training_precision, p.stack,
    c.memory_gib as memory_gib, c.memory_gib * bm.low_ratio as memory_gib_low, c.memory_gib * bm.high_ratio as memory_gib_high,
    p.usable_memory_gib, p.usable_memory_gib - c.needed_gib as memory_margin_gib,
    case when p.unsupported is not null or c.fit_tier = 0 then 'does_not_fit' when c.fit_tier = 1 then 'tight' else 'fits' end as verdict,
    c.tokens_per_second_per_gpu * p.gpu_count as tokens_per_second,
    tokens_per_second * bs.low_ratio as tokens_per_second_low, tokens_per_second * bs.high_ratio as tokens_per_second_high,
    c.tokens_per_second_per_gpu as tokens_per_second_per_gpu,
    bottleneck_of(c.matmul_seconds, c.attention_seconds, c.traffic_seconds, c.logits_seconds, c.dequantize_seconds, c.host_exposed_seconds,
        c.communication_seconds, c.offload_seconds, c.optimizer_seconds) as bottleneck,
    e.evidence, e.evidence_run, concat_ws('; ', p.plan_assumptions, i.ignored) as assumptions,
    case when p.unsupported is not null then p.unsupported
        when c.fit_tier = 0 then 'needs ' || round(c.needed_gib, 1) || ' GiB per GPU at its least, ' || round(p.usable_memory_gib, 1) || ' usable' end as infeasible_reason,
    peak_phase_of(c.loss_phase_bytes, c.backward_start_bytes, c.backward_end_bytes, c.optimizer_phase_bytes) as peak_phase,
    c.on_gpu * c.weight_bytes_per_gpu / 1073741824e0 as weights_gib, c.adapter_bytes_per_gpu / 1073741824e0 as adapter_gib,
    c.on_gpu * c.gradient_bytes_per_gpu / 1073741824e0 as gradients_gib, c.on_gpu * c.optimizer_bytes_per_gpu / 1073741824e0 as optimizer_gib,
    c.on_gpu * c.step_copy_bytes_per_gpu / 1073741824e0 as optimizer_copy_gib, c.stored_bytes / 1073741824e0 as activations_gib,
    c.working_bytes / 1073741824e0 as working_set_gib, c.logits_bytes / 1073741824e0 as logits_gib,
    c.gathered_units_bytes / 1073741824e0 as fsdp_units_gib, c.fragmentation_gib as fragmentation_gib, c.process_gib as overhead_gib,
    c.matmul_seconds as matmul_seconds, c.attention_seconds as attention_seconds, c.traffic_seconds as traffic_seconds, c.logits_seconds as logits_seconds,
    c.dequantize_seconds as dequantization_seconds, c.host_exposed_seconds as host_seconds, c.communication_seconds as communication_seconds,
    c.offload_seconds as offload_seconds, c.optimizer_seconds as optimizer_seconds, c.host_per_step_seconds as overhead_seconds, c.step_seconds as micro_step_seconds,
    p.training_state_gib, p.result_gib, p.params_total * 2e0 / 1073741824e0 as model_download_gib
from _best p
cross join _ignored i
join _shardings s on s.number = c.candidate // 21
join _evidence e on e.calibration = p.calibration and e.gpu = p.gpu_id and e.method = p.method and e.params = p.params_total and e.gpu_count = p.gpu_count
join main.model_bands bm on bm.quantity = 'memory' and bm.method = p.method and bm.gpu_class = e.class and bm.evidence = e.evidence
join main.model_bands bs on bs.quantity = 'speed' and bs.method = p.method and bs.gpu_class = e.class and bs.evidence = e.evidence;
comment on macro table plans_for is
    'One row per job, GPU and count: the settings with most tokens per second among those that fit, memory and time term by term, band, evidence, and infeasible_reason where nothing fits. Time terms: seconds of one micro-step; overhead_seconds: fixed cost of a step, per micro-step.';
