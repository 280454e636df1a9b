-- Peak memory per GPU: the maximum over the phases of a step, not a sum of terms.

create or replace macro memory_coefficients(settings) as table
select s.* exclude (stored_full, stored_adapter, stored_quantized, stored_compiled, stored_engine, stored_eager_scores, working_eager,
        working_fused, working_compiled, working_eager_scores, working_fp32_residual, working_quantized, fsdp_layers,
        foreach_copy, paged_resident),
    case when is_full then params_total * full_weight_bytes
        when is_quantized then params_linear * quantized_bytes + params_unquantized * case when kbit_upcast = 1 then 4e0 else weight_bytes end
        else params_total * weight_bytes end as weight_total_bytes,
    case when is_full then params_total else adapter_params end as trainable_params,
    case when is_full then full_weight_bytes else adapter_bytes end as gradient_bytes,
    case when is_8bit_optimizer then 2.06e0
        when training_precision = 'deepspeed_bf16' then 12e0
        when is_full then 2e0 * full_weight_bytes
        else 2e0 * adapter_bytes end * case when is_paged_optimizer then paged_resident else 1e0 end as optimizer_bytes,
    -- foreach AdamW, the Trainer's long-time default, holds one more copy of what it updates (torchtune, torchtitan and Megatron
    -- fuse the step); ZeRO's mixed precision also an fp32 copy of the gradients.
    case when optimizer = 'adamw' and stack in ('hf', 'foak', 'liger', 'litgpt') then foreach_copy * case when not is_full then adapter_bytes when training_precision = 'deepspeed_bf16' then 4e0 else full_weight_bytes end else 0e0 end
        + case when is_full and training_precision = 'deepspeed_bf16' then 4e0 else 0e0 end as step_copy_bytes,
    layers * hidden * case when fp32_residual = 1 then 4e0 else 2e0 end as checkpoint_bytes_per_token,
    layers * layer_bytes_per_token
        * case when stack = 'compile' then stored_compiled when stack in ('te', 'mosaic') then stored_engine else 1e0 end
        * case when is_full then stored_full when is_quantized then stored_quantized else stored_adapter end as stored_bytes_per_token,
    layers * heads * seq_len * (1 - flash_attention) * stored_eager_scores as stored_score_bytes_per_token,
    layer_bytes_per_token * case when stack in ('hf', 'litgpt') then working_eager when stack in ('compile', 'torchtune', 'te', 'mosaic') then working_compiled else working_fused end
        + case when fp32_residual = 1 then working_fp32_residual * 2e0 * 8e0 * hidden else 0e0 end
        + heads * seq_len * (1 - flash_attention) * working_eager_scores as working_bytes_per_token,
    case when is_quantized then working_quantized * 2e0 * hidden * intermediate else 0e0 end as dequantized_bytes,
    vocab * case loss_kernel when 'hf' then logits_hf when 'fused' then logits_fused when 'chunked' then logits_chunked when 'liger' then logits_liger
        when 'litgpt' then logits_litgpt when 'titan' then logits_titan when 'fp32std' then logits_fp32std else logits_hf end as logits_bytes_per_token,
    -- What a sharded run holds unsharded: the root unit (embeddings and head) and a few layers.
    params_unquantized * 2e0 as root_unit_bytes,
    fsdp_layers * params_linear / layers * case when is_quantized then quantized_bytes else 2e0 end as layer_units_bytes,
    greatest(vocab * hidden, hidden * intermediate)::double as largest_tensor_params
from query_table(settings) s;
comment on macro table memory_coefficients is
    'Bytes of each part of a training state before micro-batch and sharding are applied. Rajbhandari et al. 2019 (arXiv 1910.02054) for the states, Korthikanti et al. 2022 (arXiv 2205.05198) for activations; constants fitted.';

create or replace macro peak_phase_of(loss, backward_start, backward_end, optimizer_step) as
    case greatest(loss, backward_start, backward_end, optimizer_step)
        when loss then 'loss' when backward_start then 'start of backward' when backward_end then 'end of backward' else 'optimizer step' end;
comment on macro peak_phase_of is 'The phase of a training step that needs most memory, from the bytes of each.';

create or replace macro memory_terms(scaled) as table
with _states as (
    select *,
        case when offload like '%cpu%' then 0e0 else 1e0 end as on_gpu,
        weight_total_bytes / (model_parallel * case when shards_weights then data_parallel else 1 end) as weight_bytes_per_gpu,
        case when is_full then 0e0 else adapter_params * adapter_bytes / (model_parallel * case when shards_weights then data_parallel else 1 end) end as adapter_bytes_per_gpu,
        case when is_optimizer_in_backward then largest_tensor_params else trainable_params end * gradient_bytes
            / (model_parallel * case when shards_gradients then data_parallel else 1 end) as gradient_bytes_per_gpu,
        trainable_params * optimizer_bytes / (model_parallel * case when shards_optimizer then data_parallel else 1 end) as optimizer_bytes_per_gpu,
        case when is_optimizer_in_backward then 0e0 else trainable_params * step_copy_bytes / (model_parallel * case when shards_weights then data_parallel else 1 end) end as step_copy_bytes_per_gpu,
        case when checkpointing = 'none' then stored_bytes_per_token + stored_score_bytes_per_token
            when checkpointing = 'sac' then checkpoint_bytes_per_token + stored_selective * stored_bytes_per_token
            when offload like '%act%' then checkpoint_bytes_per_token * activation_offload_left
            else checkpoint_bytes_per_token end * micro_step_tokens / tensor_parallel as stored_bytes,
        ((working_bytes_per_token + case when doubles_checkpoints then sharded_adapter_copies * checkpoint_bytes_per_token else 0e0 end) * micro_step_tokens
            + dequantized_bytes) / tensor_parallel as working_bytes,
        logits_bytes_per_token * micro_step_tokens / tensor_parallel as logits_bytes,
        case when shards_weights and data_parallel > 1 then root_unit_bytes / model_parallel else 0e0 end as root_bytes,
        case when shards_weights and data_parallel > 1 then layer_units_bytes / tensor_parallel else 0e0 end as units_bytes,
        -- Gradients live through the forward pass only when they are being accumulated.
        case when grad_accum > 1 then 1e0 else 0e0 end as accumulates
    from query_table(scaled)
),
_phases as (
    select *,
        on_gpu * (weight_bytes_per_gpu + optimizer_bytes_per_gpu) + adapter_bytes_per_gpu as resident_bytes,
        resident_bytes + stored_bytes + logits_bytes + root_bytes + on_gpu * accumulates * gradient_bytes_per_gpu as loss_phase_bytes,
        resident_bytes + stored_bytes + working_bytes + units_bytes + root_bytes + on_gpu * accumulates * gradient_bytes_per_gpu as backward_start_bytes,
        resident_bytes + stored_bytes / layers + working_bytes + units_bytes + root_bytes + on_gpu * gradient_bytes_per_gpu as backward_end_bytes,
        resident_bytes + on_gpu * (gradient_bytes_per_gpu + step_copy_bytes_per_gpu) as optimizer_phase_bytes
    from _states
),
_peak as (
    select *,
        greatest(loss_phase_bytes, backward_start_bytes, backward_end_bytes, optimizer_phase_bytes) as peak_bytes,
        case when gpu_count > 1 then context_multi_gpu_gib else 0e0 end + context_gib as process_gib
    from _phases
)
select *,
    peak_bytes / 1073741824e0 + allocated_base_gib as allocated_gib,
    -- The caching allocator keeps more than is in use, above all after large transient tensors; short of memory it gives back.
    least(greatest(usable_memory_gib - process_gib, allocated_gib), allocated_gib * reserved_ratio
        + (reserved_transient * (logits_bytes + working_bytes) + reserved_sharded * (root_bytes + units_bytes + case when data_parallel > 1 then stored_bytes else 0e0 end)) / 1073741824e0) as reserved_gib,
    peak_phase_of(loss_phase_bytes, backward_start_bytes, backward_end_bytes, optimizer_phase_bytes) as peak_phase,
    case memory_metric when 'alloc' then allocated_gib when 'reserved' then reserved_gib else reserved_gib + process_gib end as memory_gib,
    -- Death comes when what the phases need, and what is lost between large transient tensors, exceeds what is usable.
    greatest(optimizer_phase_bytes, greatest(loss_phase_bytes, backward_start_bytes, backward_end_bytes) + fit_transient * (logits_bytes + working_bytes)) / 1073741824e0
        * fit_reserved_ratio + process_gib + fit_margin_gib as needed_gib
from _peak;
comment on macro table memory_terms is
    'Peak memory of each setting, GiB per GPU: the larger of loss, start of backward, end of backward and optimizer step; allocated, reserved and whole-process figures.';
