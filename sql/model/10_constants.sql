-- The constants of the model, one row per calibration: 'all' is what answers use; 'without <source>' was fitted with
-- that source left out and 'split' on the calibration half, so that held-out errors come from the same macros.
create or replace macro constants() as table
from (
    pivot main.model_constants on name in (
        'gemm_efficiency', 'gemm_ratio_at_one_watt', 'gemm_ratio_watt_exponent', 'attention_efficiency',
        'fp8_gain', 'fp8_gain_compiled', 'emulated_bf16_rate', 'weight_reads', 'traffic_eager', 'traffic_fused', 'traffic_compiled', 'traffic_engine', 'traffic_mosaic', 'attention_exponent', 'attention_engine', 'gemm_exponent', 'waiting_per_doubling', 'waiting_per_node_doubling', 'fp4_gain', 'expert_exchange',
        'traffic_quadratic_attention', 'traffic_fp32_residual', 'traffic_logits', 'traffic_logits_fixed', 'dequantization_nf4', 'dequantization_gptq',
        'host_seconds_eager', 'host_seconds_fused', 'host_seconds_compiled', 'host_seconds_engine', 'host_seconds_mosaic', 'host_adapter_factor', 'host_quantized', 'host_overlap',
        'host_step_seconds', 'host_before_2020', 'adapter_traffic', 'optimizer_traffic', 'recompute_selective', 'link_efficiency', 'pcie_link_efficiency', 'staged_link_efficiency',
        'network_efficiency', 'communication_overlap', 'communication_floor', 'collective_latency_seconds', 'offload_efficiency', 'host_memory_gb_s', 'bubble_share', 'expert_half_width',
        'stored_full', 'stored_adapter', 'stored_quantized', 'stored_compiled', 'stored_engine', 'stored_selective', 'stored_eager_scores',
        'working_eager', 'working_fused', 'working_compiled', 'working_eager_scores', 'working_fp32_residual', 'working_quantized', 'sharded_adapter_copies',
        'logits_hf', 'logits_fused', 'logits_chunked', 'logits_liger', 'logits_litgpt', 'logits_titan', 'logits_fp32std',
        'fsdp_layers', 'foreach_copy', 'activation_offload_left', 'paged_resident',
        'allocated_base_gib', 'reserved_ratio', 'reserved_transient', 'reserved_sharded', 'context_gib', 'context_multi_gpu_gib', 'fit_reserved_ratio', 'fit_transient', 'fit_margin_gib', 'fit_safety_ratio'
    ) using max(value) group by calibration
);
comment on macro table constants is
    'Fitted and fixed constants of the memory and speed model, one row per calibration. Units and meaning: catalog/model_parameters.csv.';
