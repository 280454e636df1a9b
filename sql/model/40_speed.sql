-- Seconds of one micro-step, as a sum of separate times.

create or replace macro speed_coefficients(settings) as table
with _rates as (
    select s.*,
        -- Dense 16-bit matrix products of large square shapes: measured where somebody measured, else from the watts per datasheet TFLOP.
        coalesce(gemm_bf16_measured_tflops, case when bf16_dense_tflops is null then gemm_fp16_measured_tflops end, coalesce(bf16_dense_tflops, fp16_dense_tflops)
            * least(1.05e0, gemm_share(tdp_w / coalesce(bf16_dense_tflops, fp16_dense_tflops), gemm_ratio_at_one_watt, gemm_ratio_watt_exponent) * exp(gemm_log_offset))) * 1e12 as gemm_flops,
        case when checkpointing = 'none' then 0e0 else recompute end as recompute_passes,
        case when stack = 'te' then traffic_engine when stack = 'mosaic' then traffic_mosaic when stack in ('compile') then traffic_compiled
            when stack in ('foak', 'liger') then traffic_fused else traffic_eager end as layer_traffic,
        case when gpu_year < 2020 then host_before_2020 else 1e0 end as host_factor,
        case when stack = 'te' then host_seconds_engine when stack = 'mosaic' then host_seconds_mosaic when stack in ('compile') then host_seconds_compiled
            when stack in ('foak', 'liger') then host_seconds_fused else host_seconds_eager end as host_seconds_per_layer,
        case when peer_to_peer and nvlink_gb_s is not null then nvlink_gb_s / 2 * 1e9 * link_efficiency
            when peer_to_peer then 4e9 * pow(2, pcie_gen - 1) * pcie_link_efficiency
            else 4e9 * pow(2, pcie_gen - 1) * staged_link_efficiency end as link_bytes_per_second,
        4e9 * pow(2, pcie_gen - 1) * offload_efficiency as host_bytes_per_second
    from query_table(settings) s
),
_efficiency as (
    select *,
        gemm_flops * gemm_efficiency * pow(greatest(1e0, gemm_flops / 271e12), gemm_exponent) * case when bf16_dense_tflops is null and training_precision <> 'fp16' then emulated_bf16_rate else 1e0 end as matmul_flops_per_second,
        -- Never above what the datasheet says of the narrow format itself.
        case when fp8 >= 1 and fp8_dense_tflops is not null then least(
            case when fp8 = 2 and fp4_dense_tflops is not null then fp4_gain else 1e0 end
                * (1 + (fp8_dense_tflops / coalesce(bf16_dense_tflops, fp16_dense_tflops) - 1) * case when stack = 'te' then fp8_gain else fp8_gain_compiled end),
            0.95e12 * case when fp8 = 2 then coalesce(fp4_dense_tflops, fp8_dense_tflops) else fp8_dense_tflops end / matmul_flops_per_second)
            else 1e0 end as fp8_speedup
    from _rates
)
-- What is used up here is left out: every column carried on costs time in each later step.
select * exclude (gemm_efficiency, gemm_ratio_at_one_watt, gemm_ratio_watt_exponent, attention_efficiency, fp8_gain,
        fp8_gain_compiled, emulated_bf16_rate, weight_reads, traffic_eager, traffic_fused, traffic_compiled,
        traffic_engine, traffic_mosaic, attention_exponent, gemm_exponent, attention_engine, fp4_gain, expert_exchange,
        traffic_quadratic_attention, traffic_fp32_residual, traffic_logits, traffic_logits_fixed, dequantization_nf4,
        dequantization_gptq, host_seconds_eager, host_seconds_fused, host_seconds_compiled, host_seconds_engine,
        host_seconds_mosaic, host_adapter_factor, host_quantized, host_before_2020, adapter_traffic, optimizer_traffic,
        link_efficiency, pcie_link_efficiency, staged_link_efficiency, offload_efficiency, expert_half_width,
        logits_hf, logits_fused, logits_chunked, logits_liger, logits_litgpt, logits_titan, logits_fp32std),
    -- Forward and input gradients always; weight gradients only where weights train.
    (2e0 * linear_active * (case when is_full then 3e0 else 2e0 end + recompute_passes) / fp8_speedup + 2e0 * adapter_params / experts * (3e0 + recompute_passes))
        / (matmul_flops_per_second * case when experts > 1 then intermediate / (intermediate + expert_half_width) else 1e0 end) as matmul_seconds_per_token,
    2e0 * case when stack = 'te' then linear_active else params_linear end * (case when is_full then 3e0 else 2e0 end + recompute_passes) * weight_reads / memory_bytes_per_second as weight_read_seconds,
    2e0 * vocab * hidden * case when is_full then 3e0 else 2e0 end / matmul_flops_per_second
        + vocab * traffic_logits * (traffic_logits_fixed + case loss_kernel when 'hf' then logits_hf when 'fused' then logits_fused when 'chunked' then logits_chunked when 'liger' then logits_liger
        when 'litgpt' then logits_litgpt when 'titan' then logits_titan when 'fp32std' then logits_fp32std else logits_hf end) / memory_bytes_per_second as logits_seconds_per_token,
    2e0 * seq_len * query_width * layers * (3.5e0 + recompute_passes) * (2 - flash_attention) / (matmul_flops_per_second * attention_efficiency * case when stack = 'te' then attention_engine else 1e0 end * pow(gemm_flops / 271e12, attention_exponent))
        + (1 - flash_attention) * heads * seq_len * layers * traffic_quadratic_attention * (3e0 + recompute_passes) / memory_bytes_per_second as attention_seconds_per_token,
    layers * layer_bytes_per_token * (layer_traffic * (1 + fp32_residual * traffic_fp32_residual) + case when is_full then 0e0 else adapter_traffic end) * (3e0 + recompute_passes) / memory_bytes_per_second as elementwise_seconds_per_token,
    case when is_quantized then params_linear * (quantized_bytes + 2e0) * (2e0 + recompute_passes)
        * case when quantization = 'gptq' then dequantization_gptq else dequantization_nf4 end / memory_bytes_per_second else 0e0 end as dequantization_seconds,
    layers * (2e0 + recompute_passes) * host_seconds_per_layer * host_factor * (case when is_full then 1e0 else host_adapter_factor end) * (case when is_quantized then 1 + host_quantized else 1e0 end) as host_floor_seconds,
    -- The optimizer reads and writes weights and moments and reads gradients, once per step.
    case when is_full then params_total else adapter_params end
        * case when is_full then 3e0 * full_weight_bytes + case when is_8bit_optimizer then 4e0 else 4e0 * full_weight_bytes end else 28e0 end
        * optimizer_traffic / memory_bytes_per_second as optimizer_seconds_unsharded,
    case when is_quantized then params_linear * quantized_bytes + params_unquantized * 2e0 else params_total * 2e0 end as gathered_bytes,
    -- FSDP gathers a layer for the forward and once for recompute and backward; ZeRO-3 for each of them.
    case when sharding = 'zero3' then 2e0 + recompute_passes else 2e0 end as gather_passes,
    -- Tokens travel to their experts and back, forward and backward, where a Megatron engine spreads the experts.
    case when experts > 1 and stack = 'te' then 8e0 * layers * hidden * experts_active * expert_exchange else 0e0 end as exchanged_bytes_per_token,
    case when is_full then case when stack = 'te' then params_active else params_total end * 2e0 else adapter_params * adapter_bytes end as reduced_bytes
from _efficiency;
comment on macro table speed_coefficients is
    'Seconds per token and per micro-step of each part of a training step on one GPU, before micro-batch, sharding and links are applied. FLOPs: Kaplan et al. 2020 (arXiv 2001.08361), Dao 2023 (arXiv 2307.08691) for attention; rates from gpus.csv; constants fitted.';

create or replace macro bottleneck_of(matmul, attention, traffic, logits, dequantization, host, communication, offload, optimizer) as
    case greatest(matmul, attention, traffic, logits, dequantization, host, communication, offload, optimizer)
        when matmul then 'matrix products' when attention then 'attention' when traffic then 'memory traffic' when logits then 'logits'
        when dequantization then 'dequantization' when host then 'host' when communication then 'communication' when offload then 'offload'
        else 'optimizer' end;
comment on macro bottleneck_of is 'The term of a training step that takes most time, from the seconds of each.';

create or replace macro speed_terms(scaled) as table
with _compute as (
    select *,
        (matmul_seconds_per_token * micro_step_tokens + weight_read_seconds) / model_parallel as matmul_seconds,
        attention_seconds_per_token * micro_step_tokens / model_parallel as attention_seconds,
        elementwise_seconds_per_token * micro_step_tokens / model_parallel as traffic_seconds,
        logits_seconds_per_token * micro_step_tokens / model_parallel as logits_seconds,
        dequantization_seconds / model_parallel as dequantize_seconds,
        host_floor_seconds / pipeline_parallel as host_seconds,
        -- Held in host memory, the state is stepped there, by processors that the GPUs of a node share.
        case when offload like '%cpu%' then optimizer_seconds_unsharded * memory_bytes_per_second / (host_memory_gb_s * 1e9) / node_count
            else optimizer_seconds_unsharded / (model_parallel * case when shards_optimizer then data_parallel else 1 end) end / grad_accum as optimizer_seconds,
        host_step_seconds * host_factor / grad_accum as host_per_step_seconds,
        case when offload like '%cpu%' then (gathered_bytes * 2e0 + reduced_bytes) / data_parallel / host_bytes_per_second else 0e0 end
            + case when offload like '%act%' then 2e0 * layers * hidden * 2e0 * micro_step_tokens / host_bytes_per_second else 0e0 end as offload_seconds,
        -- Bytes that each GPU receives per micro-step.
        (case when shards_weights then gather_passes * gathered_bytes + reduced_bytes
            when sharding = 'none' then 0e0
            else 2e0 * reduced_bytes / grad_accum end) / model_parallel as collective_bytes,
        case when tensor_parallel > 1 then 8e0 * layers / pipeline_parallel * hidden * 2e0 * micro_step_tokens * (tensor_parallel - 1) / tensor_parallel / link_bytes_per_second else 0e0 end
            + exchanged_bytes_per_token * micro_step_tokens / model_parallel * greatest(1 / link_bytes_per_second,
                case when node_count > 1 then gpu_count / node_count / (node_network_gbps * 0.125e9 * network_efficiency) else 0e0 end) as tensor_parallel_seconds
    from query_table(scaled)
),
_communication as (
    select *,
        case when data_parallel > 1 then
            greatest(collective_bytes * (data_parallel - 1) / data_parallel / link_bytes_per_second,
                case when node_count > 1 then collective_bytes * (node_count - 1) / node_count / (node_network_gbps * 0.125e9 * network_efficiency) else 0e0 end)
            + case when shards_weights then 3e0 * layers / pipeline_parallel * collective_latency_seconds * log2(data_parallel) else 0e0 end
            else 0e0 end as collective_seconds,
        matmul_seconds + attention_seconds + traffic_seconds + logits_seconds + dequantize_seconds as gpu_seconds
    from _compute
),
_exposed as (
    select *,
        greatest(collective_seconds - communication_overlap * gpu_seconds, communication_floor * collective_seconds) + tensor_parallel_seconds as communication_seconds,
        greatest(0e0, host_seconds - host_overlap * gpu_seconds) as host_exposed_seconds
    from _communication
),
_step as (
    select *,
        (gpu_seconds + host_exposed_seconds + communication_seconds + offload_seconds) * (1 + waiting_per_doubling * log2(gpu_count) + waiting_per_node_doubling * log2(node_count)) * (1 + bubble_share * (pipeline_parallel - 1) / (grad_accum * pipeline_parallel))
            + optimizer_seconds + host_per_step_seconds as step_seconds
    from _exposed
)
select *,
    micro_step_tokens / step_seconds / model_parallel as tokens_per_second_per_gpu,
    bottleneck_of(matmul_seconds, attention_seconds, traffic_seconds, logits_seconds, dequantize_seconds, host_exposed_seconds,
        communication_seconds, offload_seconds, optimizer_seconds) as bottleneck
from _step;
comment on macro table speed_terms is
    'Seconds of one micro-step per GPU, term by term, and tokens per second per GPU.';
