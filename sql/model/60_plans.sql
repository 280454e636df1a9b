-- The planner: for a workload and a GPU, the settings that finish fastest among those that fit.

create or replace macro plan_variants(jobs) as table
with _template as (
    select null::varchar as job, null::varchar as fit, null::varchar as model, null::varchar as method, null::double as seq_len,
        null::double as lora_rank, null::varchar as lora_targets, null::varchar as quantization,
        null::double as micro_batch, null::varchar as checkpointing, null::varchar as stack, null::varchar as optimizer,
        null::varchar as training_precision, null::double as max_gpus, null::double as global_batch_tokens, null::double as fp8,
        null::double as flash_attention, null::varchar as sharding, null::varchar as offload
    where false
),
_given as (from _template union all by name from query_table(jobs)),
_workloads as (
    select coalesce(job::varchar, concat_ws(' ', model, method, seq_len)) as job, coalesce(fit, 'all') as fit, model, method,
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
_checkpointings(level, checkpointing) as (values (0, 'none'), (1, 'sac'), (2, 'full'))
select w.job, w.job as run_id, w.fit, w.model, w.method, w.seq_len, w.lora_rank, w.lora_targets, w.quantization, 0e0 as kbit_upcast,
    w.stack, w.optimizer, w.fp8, w.flash_attention, g.gpu_id as gpu, 1e0 as gpu_count, s.sharding, s.offload, c.checkpointing,
    case when w.training_precision is not null then w.training_precision
        when g.bf16_dense_tflops is null then 'fp16' when w.method = 'pretrain' then 'amp' else 'bf16' end as training_precision,
    'smi' as memory_metric,
    {
        'micro_batch_wanted': w.micro_batch_wanted, 'max_gpus': w.max_gpus, 'global_batch_tokens': w.global_batch_tokens,
        'plan_assumptions': w.plan_assumptions, 'smallest': s.smallest, 'largest': s.largest, 'variant': s.variant * 3 + c.level,
        'has_nvlink': g.nvlink_gb_s is not null,
        -- Nodes are joined only where data centres do so: cards sold for servers.
        'has_fabric': g.segment in ('datacenter', 'accelerator'),
        'unsupported': case when g.architecture in ('Kepler', 'Maxwell', 'Pascal') then 'current frameworks no longer support this architecture'
        when w.fp8 = 1 and g.fp8_dense_tflops is null then 'no fp8 on this GPU'
        when w.training_precision in ('bf16', 'amp', 'deepspeed_bf16') and g.bf16_dense_tflops is null then 'no bf16 on this GPU'
        when w.method = 'qlora' and g.vendor = 'intel' then 'no 4-bit kernels for this vendor' end
    } as carried
from _workloads w, main.gpus g, _shardings s, _checkpointings c
where g.has_full_specs
    and (w.checkpointing_wanted is null or w.checkpointing_wanted = c.checkpointing)
    and (w.sharding_wanted is null or w.sharding_wanted = s.sharding or s.sharding = 'none')
    and (w.offload_wanted is null or w.offload_wanted = s.offload)
    and not (w.method in ('lora', 'qlora') and s.sharding = 'zero2');
comment on macro table plan_variants is
    'Every workload with every GPU, sharding, offload and checkpointing, as settings of a run; defaults filled and named in plan_assumptions.';

create or replace macro candidates_for(jobs) as table
with _variants as (select * from plan_variants(jobs)),
_settings as (select * exclude (carried), unnest(carried) from settings_of('_variants')),
_memory as (select * from memory_coefficients('_settings')),
_speed as (select * from speed_coefficients('_memory')),
_counts(gpus) as (values (1e0), (2e0), (4e0), (8e0), (16e0), (32e0), (64e0)),
_micro_batches(step, size) as (values (0, 1e0), (1, 2e0), (2, 4e0), (3, 8e0), (4, 16e0), (5, 32e0), (6, 64e0)),
_sized as (
    select s.* replace (
            n.gpus as gpu_count, ceil(n.gpus / s.max_gpus_per_node) as node_count,
            case when s.has_nvlink then s.node_network_gbps else 400e0 end as node_network_gbps,
            coalesce(s.micro_batch_wanted, b.size) as micro_batch,
            greatest(1e0, round(s.global_batch_tokens / (coalesce(s.micro_batch_wanted, b.size) * s.seq_len * n.gpus))) as grad_accum
        ),
        s.variant * 7 + b.step as candidate
    from _speed s, _counts n, _micro_batches b
    where n.gpus between s.smallest and s.largest and n.gpus <= s.max_gpus
        and (n.gpus <= s.max_gpus_per_node or s.has_fabric)
        and (s.micro_batch_wanted is null or b.step = 0)
        and (b.step = 0 or b.size * s.seq_len * n.gpus <= s.global_batch_tokens)
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
        tokens_per_second_per_gpu * gpu_count as tokens_per_second,
        -- Candidates that fit with room beat those that fit tightly, those beat the rest; then speed (or least memory); then the lower number.
        case when needed_gib * fit_safety_ratio <= usable_memory_gib then 2 when needed_gib <= usable_memory_gib then 1 else 0 end as fit_tier,
        case when fit_tier = 0 then greatest(0e0, 100000e0 - needed_gib) else tokens_per_second_per_gpu * gpu_count end as merit,
        (fit_tier::bigint << 58) + (least(merit * 1024e0, 1e14)::bigint << 10) + (1023 - candidate) as score
    from _candidates
),
_best as (
    select job, gpu as gpu_id, gpu_count::int as gpu_count, node_count::int as node_count,
        arg_max({
            'fit': fit, 'model': model, 'method': method, 'seq_len': seq_len::int, 'lora_rank': lora_rank::int, 'lora_targets': lora_targets, 'params_total': params_total,
            'micro_batch': micro_batch::int, 'grad_accum': grad_accum::int, 'checkpointing': checkpointing, 'sharding': sharding, 'offload': offload,
            'quantization': quantization, 'optimizer': optimizer, 'training_precision': training_precision, 'stack': stack, 'fp8': fp8,
            'node_network_gbps': case when node_count > 1 then node_network_gbps end,
            'memory_gib': memory_gib, 'needed_gib': needed_gib, 'usable_memory_gib': usable_memory_gib, 'fit_tier': fit_tier,
            'tokens_per_second': tokens_per_second, 'tokens_per_second_per_gpu': tokens_per_second_per_gpu,
            'bottleneck': bottleneck, 'peak_phase': peak_phase, 'plan_assumptions': plan_assumptions, 'unsupported': unsupported,
            'weights_gib': on_gpu * weight_bytes_held / 1073741824e0, 'adapter_gib': adapter_bytes_held / 1073741824e0,
            'gradients_gib': on_gpu * gradient_bytes_held / 1073741824e0, 'optimizer_gib': on_gpu * optimizer_bytes_held / 1073741824e0,
            'optimizer_copy_gib': on_gpu * step_copy_bytes_held / 1073741824e0, 'activations_gib': stored_bytes / 1073741824e0,
            'working_set_gib': working_bytes / 1073741824e0, 'logits_gib': logits_bytes / 1073741824e0,
            'fsdp_units_gib': (root_bytes + units_bytes) / 1073741824e0, 'fragmentation_gib': reserved_gib - allocated_gib, 'overhead_gib': process_gib,
            'matmul_seconds': matmul_seconds, 'attention_seconds': attention_seconds, 'traffic_seconds': traffic_seconds, 'logits_seconds': logits_seconds,
            'dequantization_seconds': dequantize_seconds, 'host_seconds': host_exposed_seconds, 'communication_seconds': communication_seconds,
            'offload_seconds': offload_seconds, 'optimizer_seconds': optimizer_seconds, 'overhead_seconds': host_per_step_seconds,
            'micro_step_seconds': step_seconds, 'flops_per_token': 2e0 * linear_active * case when is_full then 3e0 else 2e0 end,
            -- What a checkpoint to resume from holds, and what is kept at the end.
            'training_state_gib': case when is_full then params_total * (full_weight_bytes + optimizer_bytes) else adapter_params * (adapter_bytes + optimizer_bytes) end / 1073741824e0,
            'result_gib': case when is_full then params_total * 2e0 else adapter_params * adapter_bytes end / 1073741824e0,
            'model_download_gib': params_total * 2e0 / 1073741824e0
        }, score) as plan
    from _scored group by job, gpu, gpu_count, node_count
),
_needs as (select plan.fit as fit, gpu_id as gpu, plan.method as method, plan.params_total as params_total, gpu_count from _best),
_evidence as (select * from evidence_of('_needs'))
select job, plan.model as model, plan.method as method, plan.seq_len as seq_len, plan.lora_rank as lora_rank, plan.lora_targets as lora_targets,
    gpu_id, _best.gpu_count as gpu_count, node_count, plan.node_network_gbps as node_network_gbps,
    plan.micro_batch as micro_batch, plan.grad_accum as grad_accum, plan.checkpointing as checkpointing, plan.sharding as sharding, plan.offload as offload,
    plan.quantization as quantization, plan.optimizer as optimizer, plan.training_precision as training_precision, plan.stack as stack,
    plan.memory_gib as memory_gib, plan.memory_gib * bm.low_ratio as memory_gib_low, plan.memory_gib * bm.high_ratio as memory_gib_high,
    plan.usable_memory_gib as usable_memory_gib, plan.usable_memory_gib - plan.needed_gib as memory_margin_gib,
    case when plan.unsupported is not null or plan.fit_tier = 0 then 'does_not_fit' when plan.fit_tier = 1 then 'tight' else 'fits' end as verdict,
    plan.tokens_per_second as tokens_per_second, plan.tokens_per_second * bs.low_ratio as tokens_per_second_low, plan.tokens_per_second * bs.high_ratio as tokens_per_second_high,
    plan.tokens_per_second_per_gpu as tokens_per_second_per_gpu, plan.bottleneck as bottleneck,
    e.evidence, e.evidence_run, plan.plan_assumptions as assumptions,
    case when plan.unsupported is not null then plan.unsupported
        when plan.fit_tier = 0 then 'needs ' || round(plan.needed_gib, 1) || ' GiB per GPU at its least, ' || round(plan.usable_memory_gib, 1) || ' usable' end as why_not,
    plan.peak_phase as peak_phase,
    plan.weights_gib as weights_gib, plan.adapter_gib as adapter_gib, plan.gradients_gib as gradients_gib, plan.optimizer_gib as optimizer_gib,
    plan.optimizer_copy_gib as optimizer_copy_gib, plan.activations_gib as activations_gib, plan.working_set_gib as working_set_gib, plan.logits_gib as logits_gib,
    plan.fsdp_units_gib as fsdp_units_gib, plan.fragmentation_gib as fragmentation_gib, plan.overhead_gib as overhead_gib,
    plan.matmul_seconds as matmul_seconds, plan.attention_seconds as attention_seconds, plan.traffic_seconds as traffic_seconds, plan.logits_seconds as logits_seconds,
    plan.dequantization_seconds as dequantization_seconds, plan.host_seconds as host_seconds, plan.communication_seconds as communication_seconds,
    plan.offload_seconds as offload_seconds, plan.optimizer_seconds as optimizer_seconds, plan.overhead_seconds as overhead_seconds, plan.micro_step_seconds as micro_step_seconds,
    plan.training_state_gib as training_state_gib, plan.result_gib as result_gib, plan.model_download_gib as model_download_gib
from _best
join _evidence e on e.fit = plan.fit and e.gpu = _best.gpu_id and e.method = plan.method and e.params = plan.params_total and e.gpu_count = _best.gpu_count
join main.model_bands bm on bm.quantity = 'memory' and bm.method = plan.method and bm.gpu_class = e.class and bm.evidence = e.evidence
join main.model_bands bs on bs.quantity = 'speed' and bs.method = plan.method and bs.gpu_class = e.class and bs.evidence = e.evidence;
comment on macro table plans_for is
    'One row per job, GPU and count: the settings with most tokens per second among those that fit, memory and time term by term, band, evidence, and why_not where nothing fits. Time terms: seconds of one micro-step; overhead_seconds: fixed cost of a step, per micro-step.';
