-- The numbers of the memory and speed model: fitted constants, and those that units and formats give.

CREATE OR REPLACE MACRO constants() AS TABLE
FROM (
    PIVOT main.model_constants
    ON name IN (
        -- Memory.
        'logits_hf', 'logits_fused', 'logits_chunked', 'logits_liger', 'logits_litgpt', 'logits_titan',
        'logits_fp32std', 'logits_16bit', 'logits_outside',
        'stored_full', 'stored_adapter', 'stored_quantized', 'stored_compiled', 'stored_engine',
        'stored_selective', 'stored_eager_scores',
        'working_eager', 'working_fused', 'working_compiled', 'working_eager_scores', 'working_fp32_residual',
        'working_quantized', 'working_stored', 'sharded_adapter_copies',
        'fsdp_layers', 'foreach_copy', 'activation_offload_left',
        'allocated_base_gib', 'reserved_ratio', 'reserved_transient', 'reserved_sharded',
        'context_gib', 'context_before_2020_gib', 'context_multi_gpu_gib',
        'fit_reserved_ratio', 'fit_transient', 'fit_margin_gib',
        -- Speed.
        'gemm_efficiency', 'gemm_exponent', 'gemm_ratio_at_one_watt', 'gemm_ratio_watt_exponent',
        'emulated_bf16_rate', 'fp8_gain', 'fp8_gain_compiled', 'fp4_gain', 'expert_half_width',
        'expert_half_tokens', 'attention_exponent', 'attention_engine', 'attention_mosaic', 'attention_ultra',
        'weight_reads', 'fp32_efficiency', 'attention_efficient', 'attention_fp32', 'attention_half_length',
        'attention_flash', 'bandwidth_efficiency', 'dequantization_efficiency', 'kernel_seconds',
        'python_operation_seconds', 'autograd_operation_seconds', 'traffic_fused',
        'traffic_quadratic_attention', 'traffic_fp32_residual', 'traffic_logits', 'traffic_logits_fixed',
        'adapter_traffic', 'optimizer_traffic', 'dequantization_nf4', 'dequantization_gptq',
        'host_seconds_layer', 'host_seconds_experts', 'expert_loop_seconds', 'host_adapter_factor',
        'host_quantized', 'host_overlap', 'host_step_seconds', 'host_before_2020', 'zero3_hook_seconds',
        'fsdp_hook_seconds', 'default_other_vendor',
        'recompute_selective', 'link_efficiency', 'pcie_link_efficiency', 'staged_link_efficiency',
        'network_efficiency', 'communication_overlap', 'communication_floor', 'collective_latency_seconds',
        'expert_exchange', 'offload_efficiency', 'host_memory_gb_s', 'bubble_share', 'head_imbalance',
        'waiting_per_doubling', 'waiting_per_node_doubling'
    )
    USING max(value)
    GROUP BY calibration
);
COMMENT ON MACRO TABLE constants IS
    'Fitted and fixed constants of the memory and speed model, one row per calibration. Units and meaning: catalog/model_parameters.csv.';

CREATE OR REPLACE MACRO gpu_family(architecture, segment) AS
    split_part(architecture, ' ', 1) || ' ' || segment;
COMMENT ON FUNCTION gpu_family IS 'GPUs of one generation and market, whose matrix-product efficiency goes together.';

CREATE OR REPLACE MACRO gemm_share(watts_per_tflop, at_one_watt, exponent) AS
    at_one_watt * pow(watts_per_tflop, exponent);
COMMENT ON FUNCTION gemm_share IS
    'Expected share of the dense 16-bit datasheet peak that large matrix products reach, by watts per datasheet TFLOP: cards short of power stay below their datasheet. Regression over the measured cards of gpus.csv.';

CREATE OR REPLACE MACRO gemm_families() AS TABLE
SELECT
    c.calibration,
    gpu_family(g.architecture, g.segment) AS family,
    -- One card that does as expected is added: few cards count for less.
    sum(
        ln(g.gemm_bf16_measured_tflops / g.bf16_dense_tflops)
        - ln(gemm_share(g.tdp_w / g.bf16_dense_tflops, c.gemm_ratio_at_one_watt, c.gemm_ratio_watt_exponent))
    ) / (count(*) + 1) AS gemm_log_offset
FROM main.gpus AS g
CROSS JOIN constants() AS c
WHERE g.gemm_bf16_measured_tflops IS NOT NULL AND g.bf16_dense_tflops IS NOT NULL AND g.tdp_w IS NOT NULL
    AND g.has_full_specs AND g.derived_from IS NULL
GROUP BY ALL;
COMMENT ON MACRO TABLE gemm_families IS
    'How much better than gemm_share the measured cards of a family do, as a logarithm, by calibration.';

CREATE OR REPLACE MACRO gib(bytes) AS bytes / 1073741824e0;
COMMENT ON FUNCTION gib IS 'Bytes in GiB, 2^30 bytes.';

CREATE OR REPLACE MACRO bytes_16bit() AS 2e0;
COMMENT ON FUNCTION bytes_16bit IS 'Bytes of a number in bf16 or fp16.';

CREATE OR REPLACE MACRO bytes_fp32() AS 4e0;
COMMENT ON FUNCTION bytes_fp32 IS 'Bytes of a number in fp32.';

CREATE OR REPLACE MACRO bytes_8bit_moments() AS 2.06e0;
COMMENT ON FUNCTION bytes_8bit_moments IS
    'Bytes per parameter of both Adam moments in 8 bits (Dettmers et al. 2021, arXiv 2110.02861); 3% assumed for the scales of their blocks.';

CREATE OR REPLACE MACRO quantized_weight_bytes(quantization) AS
    CASE quantization
        WHEN 'nf4' THEN 0.5625e0 -- 4 bits, and 4 bytes per 64: Dettmers et al. 2023, arXiv 2305.14314
        WHEN 'nf4dq' THEN 0.516e0 -- 4 bits, and a byte per 64, and 4 bytes per 64 x 256: ibid.
        WHEN 'gptq' THEN 0.5195e0 -- 4 bits, and a 16-bit scale and a 4-bit zero per group of 128
        WHEN 'int8' THEN 1e0
        ELSE 2e0
    END;
COMMENT ON FUNCTION quantized_weight_bytes IS 'Bytes per parameter of a quantized linear layer, scales included.';

CREATE OR REPLACE MACRO a100_gemm_flops() AS 271e12;
COMMENT ON FUNCTION a100_gemm_flops IS
    'Measured rate of large 16-bit matrix products on an A100 SXM (catalog/gpus.csv), FLOP/s: the reference that gemm_exponent and attention_exponent count from.';

CREATE OR REPLACE MACRO h100_gemm_flops() AS 795e12;
COMMENT ON FUNCTION h100_gemm_flops IS
    'Measured rate of large 16-bit matrix products on an H100 SXM (catalog/gpus.csv), FLOP/s, beyond which kernels of flash attention 2 get no faster.';

CREATE OR REPLACE MACRO pcie_bytes_per_second(generation) AS 4e9 * pow(2, generation - 1);
COMMENT ON FUNCTION pcie_bytes_per_second IS
    'One direction of 16 PCI Express lanes: about 4 GB/s in the first generation, twice as much in each later one.';

CREATE OR REPLACE MACRO network_bytes_per_second(gbps) AS gbps * 0.125e9;
COMMENT ON FUNCTION network_bytes_per_second IS 'Gbit/s as bytes per second.';
