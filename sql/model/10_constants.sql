-- The constants of the memory and speed model: fitted, assumed, or implied by units and number formats.

CREATE OR REPLACE MACRO constants() AS TABLE
SELECT c.calibration, c AS k
FROM (
    PIVOT main.model_constants
    ON name IN constant_name
    USING max(value)
    GROUP BY calibration
) AS c;
COMMENT ON MACRO TABLE constants IS
    'The fitted and fixed constants of the memory and speed model, one row per calibration. k: a struct with a field for each constant, such as k.gemm_efficiency. catalog/model_parameters.csv gives the unit and meaning of each constant.';

CREATE OR REPLACE MACRO gpu_family(architecture, segment) AS
    split_part(architecture, ' ', 1) || ' ' || segment;
COMMENT ON FUNCTION gpu_family IS 'The generation and market segment of a GPU; GPUs that share both have similar efficiency in matrix products.';

CREATE OR REPLACE MACRO gemm_share(watts_per_tflop, at_one_watt, exponent) AS
    at_one_watt * pow(watts_per_tflop, exponent);
COMMENT ON FUNCTION gemm_share IS
    'Expected share of the dense 16-bit datasheet peak that large matrix products reach, given the watts per datasheet TFLOP/s: power-limited cards stay below their datasheet peak. The function is a regression fitted to the measured cards in gpus.csv.';

CREATE OR REPLACE MACRO gemm_families() AS TABLE
SELECT
    c.calibration,
    gpu_family(g.architecture, g.segment) AS family,
    -- A fictitious card that performs as expected is added, which keeps small families close to that.
    sum(
        ln(g.gemm_bf16_measured_tflops / g.bf16_dense_tflops)
        - ln(gemm_share(g.tdp_w / g.bf16_dense_tflops, k.gemm_ratio_at_one_watt, k.gemm_ratio_watt_exponent))
    ) / (count(*) + 1) AS gemm_log_offset
FROM main.gpus AS g
CROSS JOIN constants() AS c
WHERE g.gemm_bf16_measured_tflops IS NOT NULL AND g.bf16_dense_tflops IS NOT NULL AND g.tdp_w IS NOT NULL
    AND g.has_full_specs AND g.derived_from IS NULL
GROUP BY ALL;
COMMENT ON MACRO TABLE gemm_families IS
    'The logarithm of the ratio by which the measured cards of each family exceed gemm_share, for each calibration.';

CREATE OR REPLACE MACRO gib(bytes) AS bytes / 1073741824e0;
COMMENT ON FUNCTION gib IS 'A number of bytes, converted to GiB (2^30 bytes).';

CREATE OR REPLACE MACRO bytes_16bit() AS 2e0;
COMMENT ON FUNCTION bytes_16bit IS 'Size of a number in bf16 or fp16, in bytes.';

CREATE OR REPLACE MACRO bytes_fp32() AS 4e0;
COMMENT ON FUNCTION bytes_fp32 IS 'Size of a number in fp32, in bytes.';

CREATE OR REPLACE MACRO bytes_8bit_moments() AS 2.06e0;
COMMENT ON FUNCTION bytes_8bit_moments IS
    'Bytes per parameter for both Adam moments in 8 bits (Dettmers et al. 2021, arXiv 2110.02861), with 3% assumed for the scales of the quantized blocks.';

CREATE OR REPLACE MACRO quantized_weight_bytes(quantization) AS
    CASE quantization
        WHEN 'nf4' THEN 0.5625e0 -- 4 bits, and 4 bytes per 64 weights: Dettmers et al. 2023, arXiv 2305.14314
        WHEN 'nf4dq' THEN 0.516e0 -- 4 bits, a byte per 64 weights, and 4 bytes per 64 x 256: ibid.
        WHEN 'gptq' THEN 0.5195e0 -- 4 bits, and a 16-bit scale and a 4-bit zero point per 128 weights
        WHEN 'int8' THEN 1e0
        ELSE 2e0
    END;
COMMENT ON FUNCTION quantized_weight_bytes IS 'Bytes per parameter of a quantized linear layer, including the scales.';

CREATE OR REPLACE MACRO a100_gemm_flops() AS 271e12;
COMMENT ON FUNCTION a100_gemm_flops IS
    'Measured rate of large 16-bit matrix products on an A100 SXM (catalog/gpus.csv), in FLOP/s: the reference for gemm_exponent and attention_exponent.';

CREATE OR REPLACE MACRO h100_gemm_flops() AS 795e12;
COMMENT ON FUNCTION h100_gemm_flops IS
    'Measured rate of large 16-bit matrix products on an H100 SXM (catalog/gpus.csv), in FLOP/s: on cards with a higher rate, FlashAttention-2 kernels get no faster.';

CREATE OR REPLACE MACRO pcie_bytes_per_second(generation) AS 4e9 * pow(2, generation - 1);
COMMENT ON FUNCTION pcie_bytes_per_second IS
    'Bandwidth of 16 PCI Express lanes in one direction, in bytes per second: about 4 GB/s in the first generation, doubling with each later generation.';

CREATE OR REPLACE MACRO network_bytes_per_second(gbps) AS gbps * 0.125e9;
COMMENT ON FUNCTION network_bytes_per_second IS 'A bandwidth in Gbit/s, converted to bytes per second.';

CREATE OR REPLACE MACRO ethernet_gbps() AS 400e0;
COMMENT ON FUNCTION ethernet_gbps IS
    'Network bandwidth of a node whose cards have no NVLink, in Gbit/s. Assumed: one port of 400 Gbit/s Ethernet.';

CREATE OR REPLACE MACRO most_above_datasheet() AS 1.05e0;
COMMENT ON FUNCTION most_above_datasheet IS
    'Highest ratio of the rate of large matrix products to the datasheet peak, for a card without a measurement. Assumed.';

CREATE OR REPLACE MACRO narrow_format_share() AS 0.95e0;
COMMENT ON FUNCTION narrow_format_share IS
    'Highest share of the fp8 or fp4 datasheet peak that matrix products in that format reach. Assumed.';

CREATE OR REPLACE MACRO adamw_fp32_bytes() AS 28e0;
COMMENT ON FUNCTION adamw_fp32_bytes IS
    'Bytes that a step of AdamW in fp32 moves per parameter: 7 x 4 bytes, because the step reads the weight, the gradient and both moments, and writes the weight and both moments.';
