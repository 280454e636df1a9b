-- From the settings of a run, as people write them, to the quantities that the formulas need.

create or replace macro adapter_width(target, hidden, query, key_value, intermediate, experts) as
    case target
        when 'q_proj' then hidden + query
        when 'k_proj' then hidden + key_value
        when 'v_proj' then hidden + key_value
        when 'o_proj' then query + hidden
        when 'qkv_fused' then hidden + query + 2 * key_value
        when 'gate_proj' then (hidden + intermediate) * experts
        when 'up_proj' then (hidden + intermediate) * experts
        when 'down_proj' then (intermediate + hidden) * experts
        else error('lora_targets: ' || target || ' is not one of q_proj, k_proj, v_proj, o_proj, qkv_fused, gate_proj, up_proj, down_proj')
    end;
comment on macro adapter_width is
    'in + out of one adapted linear layer, in features: a LoRA adapter of rank r holds r x (in + out) parameters (Hu et al. 2021, arXiv 2106.09685).';

create or replace macro gpu_family(architecture, segment) as split_part(architecture, ' ', 1) || ' ' || segment;
comment on macro gpu_family is 'GPUs of one generation and market, whose matrix-product efficiency goes together.';

create or replace macro gemm_share(watts_per_tflop, at_one_watt, exponent) as at_one_watt * pow(watts_per_tflop, exponent);
comment on macro gemm_share is
    'Expected share of the dense 16-bit datasheet peak that large matrix products reach, by watts per datasheet TFLOP: cards short of power stay below their datasheet. Regression over the measured cards of gpus.csv.';

create or replace macro ignored_columns(jobs, known) as table
select 'ignored columns: ' || nullif(array_to_string(list_filter(struct_keys(any_value(_row)), lambda name: not list_contains(known, lower(name))), ', '), '') as ignored
from (select _row from query_table(jobs) _row limit 1);
comment on macro table ignored_columns is
    'Says which columns of a relation are none of the known ones: a misspelt setting would otherwise silently be a default.';

create or replace macro settings_of(jobs) as table
with _template as (
    select null::varchar as job, null::varchar as run_id, null::varchar as calibration, null::varchar as model, null::varchar as gpu,
        null::double as gpu_count, null::double as node_count, null::double as node_network_gbps,
        null::varchar as method, null::varchar as quantization, null::double as kbit_upcast,
        null::double as lora_rank, null::varchar as lora_targets, null::double as adapter_bytes,
        null::varchar as training_precision, null::double as weight_bytes, null::double as fp8,
        null::varchar as optimizer, null::varchar as sharding, null::double as tensor_parallel, null::double as pipeline_parallel,
        null::double as micro_batch, null::double as seq_len, null::double as grad_accum,
        null::varchar as checkpointing, null::double as flash_attention, null::varchar as stack,
        null::varchar as loss_kernel, null::varchar as offload, null::varchar as memory_metric, null as carried
    where false
),
_given as (from _template union all by name from query_table(jobs)),
_known as (
    select job::varchar as job, run_id::varchar as run_id, coalesce(calibration, 'all') as calibration, model, gpu,
        coalesce(method, 'lora') as method, gpu_count::double as gpu_count_given,
        coalesce(gpu_count::double, 1) as gpu_count, node_count::double as node_count, node_network_gbps::double as node_network_gbps,
        quantization, kbit_upcast::double as kbit_upcast, lora_rank::double as lora_rank, nullif(lora_targets, '') as lora_targets,
        adapter_bytes::double as adapter_bytes, training_precision, weight_bytes::double as weight_bytes, fp8::double as fp8,
        optimizer, sharding, tensor_parallel::double as tensor_parallel, pipeline_parallel::double as pipeline_parallel,
        micro_batch::double as micro_batch, seq_len::double as seq_len, grad_accum::double as grad_accum,
        checkpointing, flash_attention::double as flash_attention, coalesce(stack, 'hf') as stack, loss_kernel, offload, memory_metric, carried, carried,
        concat_ws('; ',
            case when method is null then 'method: lora' end,
            case when gpu_count is null then 'gpu_count: 1' end,
            case when coalesce(method, 'lora') = 'qlora' and quantization is null then 'quantization: nf4' end,
            case when coalesce(method, 'lora') = 'qlora' and kbit_upcast is null then 'kbit_upcast: 1 on stack hf, else 0' end,
            case when coalesce(method, 'lora') in ('lora', 'qlora') and lora_rank is null then 'lora_rank: 16' end,
            case when coalesce(method, 'lora') in ('lora', 'qlora') and nullif(lora_targets, '') is null then 'lora_targets: all linear layers' end,
            case when training_precision is null then 'training_precision: bf16 (amp for pretrain)' end,
            case when optimizer is null then 'optimizer: adamw' end,
            case when sharding is null and coalesce(gpu_count::double, 1) > 1 then 'sharding: zero1 on stack te, else fsdp for full and pretrain, ddp for adapters' end,
            case when micro_batch is null then 'micro_batch: 1' end,
            case when seq_len is null then 'seq_len: 2048' end,
            case when grad_accum is null then 'grad_accum: 1' end,
            case when checkpointing is null then 'checkpointing: full' end,
            case when flash_attention is null then 'flash_attention: 1' end,
            case when stack is null then 'stack: hf' end
        ) as assumptions
    from _given
),
-- How much better than expected the measured cards of a family do; few cards count for less.
_families as (
    select c.calibration, gpu_family(g.architecture, g.segment) as family,
        sum(ln(g.gemm_bf16_measured_tflops / g.bf16_dense_tflops) - ln(gemm_share(g.tdp_w / g.bf16_dense_tflops, c.gemm_ratio_at_one_watt, c.gemm_ratio_watt_exponent)))
            / (count(*) + 1) as gemm_log_offset
    from main.gpus g, constants() c
    where g.gemm_bf16_measured_tflops is not null and g.bf16_dense_tflops is not null and g.tdp_w is not null and g.has_full_specs and g.derived_from is null
    group by c.calibration, family
),
_filled as (
    select k.* replace (
            coalesce(k.node_count, ceil(k.gpu_count / g.max_gpus_per_node)) as node_count,
            -- Racks of four-GPU nodes share one NVLink domain of 72; others 3,200 Gbit/s a node since 2022, 1,600 before.
            coalesce(k.node_network_gbps, case when g.nvlink_topology = 'switched' and g.max_gpus_per_node = 4 and k.gpu_count <= 72 then 14400e0
                when g.year >= 2022 then 3200e0 else 1600e0 end) as node_network_gbps,
            case when k.method = 'qlora' then coalesce(nullif(k.quantization, 'none'), 'nf4') else coalesce(k.quantization, 'none') end as quantization,
            coalesce(k.kbit_upcast, case when k.method = 'qlora' and k.stack = 'hf' then 1e0 else 0e0 end) as kbit_upcast,
            coalesce(k.lora_rank, 16e0) as lora_rank,
            coalesce(k.lora_targets, 'q_proj+k_proj+v_proj+o_proj+gate_proj+up_proj+down_proj') as lora_targets,
            coalesce(k.adapter_bytes, case when k.stack in ('litgpt', 'torchtune', 'compile') then 2e0 else 4e0 end) as adapter_bytes,
            coalesce(k.training_precision, case when k.method = 'pretrain' then 'amp' else 'bf16' end) as training_precision,
            coalesce(k.weight_bytes, case when k.training_precision = 'fp32' then 4e0 else 2e0 end) as weight_bytes,
            coalesce(k.fp8, 0e0) as fp8,
            coalesce(k.optimizer, 'adamw') as optimizer,
            coalesce(k.sharding, case when k.gpu_count = 1 then 'none' when k.stack = 'te' then 'zero1' when k.method in ('full', 'pretrain') then 'fsdp' else 'ddp' end) as sharding,
            -- Megatron-style engines split a model that does not fit by tensors: the least power of two that holds 16-bit weights.
            coalesce(k.tensor_parallel, case when k.stack = 'te' and k.sharding is null and k.gpu_count > 1
                then least(8e0, k.gpu_count, pow(2, greatest(0, ceil(log2(m.params_total * case when k.method in ('full', 'pretrain') then 6e0 else 2e0 end
                    / (0.8e0 * 1073741824e0 * g.usable_memory_gib)))))) else 1e0 end) as tensor_parallel, coalesce(k.pipeline_parallel, 1e0) as pipeline_parallel,
            coalesce(k.micro_batch, 1e0) as micro_batch, coalesce(k.seq_len, 2048e0) as seq_len, coalesce(k.grad_accum, 1e0) as grad_accum,
            coalesce(k.checkpointing, 'full') as checkpointing, coalesce(k.flash_attention, 1e0) as flash_attention,
            coalesce(k.loss_kernel, case k.stack when 'foak' then 'fused' when 'liger' then 'liger' when 'litgpt' then 'litgpt'
                when 'torchtune' then 'chunked' when 'compile' then 'chunked' when 'te' then 'fused' else 'hf' end) as loss_kernel,
            coalesce(k.offload, '') as offload, coalesce(k.memory_metric, 'smi') as memory_metric
        ),
        m.* exclude (model, title, max_context, licence, hf_id, source),
        m.heads * m.head_dim::double as query_width, m.kv_heads * m.head_dim::double as key_value_width,
        g.vendor, g.architecture, coalesce(f.gemm_log_offset, 0e0) as gemm_log_offset, g.bandwidth_gb_s * 1e9 as memory_bytes_per_second, g.usable_memory_gib::double as usable_memory_gib,
        g.bf16_dense_tflops, g.fp16_dense_tflops, g.fp8_dense_tflops, g.fp4_dense_tflops, g.gemm_bf16_measured_tflops, g.gemm_fp16_measured_tflops, g.tdp_w, g.nvlink_gb_s, g.pcie_gen, g.peer_to_peer,
        g.max_gpus_per_node, g.year as gpu_year
    from _known k
    join main.models m on m.model = k.model
    join main.gpus g on g.gpu_id = k.gpu
    left join _families f on f.family = gpu_family(g.architecture, g.segment) and f.calibration = k.calibration
),
_numbers as (
    select f.*, c.* exclude (calibration),
        f.method in ('full', 'pretrain') as is_full,
        f.method = 'qlora' as is_quantized,
        f.sharding in ('fsdp', 'zero3') as shards_weights,
        f.sharding in ('fsdp', 'zero3', 'zero2') as shards_gradients,
        f.sharding in ('fsdp', 'zero3', 'zero2', 'zero1') as shards_optimizer,
        f.experts_active * f.intermediate::double as active_intermediate,
        f.params_total - f.params_linear::double as params_unquantized,
        f.params_active - (f.params_total - f.params_linear)::double as linear_active,
        -- The residual stream is fp32 in fp32 runs, under autocast on unsharded fp32 weights, and where k-bit training upcasts
        -- the norms; FSDP's own mixed precision keeps it in 16 bits.
        case when f.training_precision = 'fp32'
            or (f.stack in ('hf', 'foak', 'liger') and f.sharding not in ('fsdp', 'zero3')
                and (f.kbit_upcast = 1 or (f.method in ('full', 'pretrain') and f.training_precision = 'amp')))
            then 1e0 else 0e0 end as fp32_residual,
        -- Adapters under accelerate's FSDP hold the checkpoints once more during the backward pass.
        f.stack in ('hf', 'foak', 'liger') and f.sharding = 'fsdp' and f.method in ('lora', 'qlora') as doubles_checkpoints,
        case f.checkpointing when 'full' then 1e0 when 'sac' then c.recompute_selective else 0e0 end as recompute,
        case when f.method in ('full', 'pretrain') then 0e0 else f.lora_rank * f.layers * list_sum(list_transform(string_split(f.lora_targets, '+'),
            lambda t: adapter_width(t, f.hidden, f.query_width, f.key_value_width, f.intermediate, f.experts)))::double end as adapter_params,
        case f.quantization when 'nf4' then 0.5625e0 when 'nf4dq' then 0.516e0 when 'gptq' then 0.5195e0 when 'int8' then 1.0e0 else 2e0 end as quantized_bytes,
        case when f.gated_mlp = 1 then 4e0 else 2e0 end as mlp_tensors,
        case when f.training_precision in ('amp', 'fp32', 'fp16') then 4e0 else f.weight_bytes end as full_weight_bytes,
        f.optimizer like '%8bit%' as is_8bit_optimizer,
        f.optimizer like '%inbwd%' as is_optimizer_in_backward,
        f.optimizer like 'paged%' as is_paged_optimizer
    from _filled f join constants() c on c.calibration = f.calibration
)
select *,
    -- One layer's activations, bytes per token at 2 bytes each: norms and residuals 8h, attention 3q + 3kv, MLP 4f (2f ungated).
    2e0 * (8e0 * hidden + 3e0 * query_width + 3e0 * key_value_width + mlp_tensors * active_intermediate) as layer_bytes_per_token
from _numbers;
comment on macro table settings_of is
    'Settings of runs (layout of catalog/measured_runs.csv; missing columns filled with stated defaults) joined to model, GPU and constants, as numbers.';

create or replace macro scale_of(coefficients) as table
select *,
    micro_batch * seq_len as micro_step_tokens,
    gpu_count / (tensor_parallel * pipeline_parallel) as data_parallel,
    tensor_parallel * pipeline_parallel as model_parallel
from query_table(coefficients);
comment on macro table scale_of is
    'Tokens of one micro-step on one data-parallel rank, and the sizes of the data-parallel and model-parallel groups.';
