-- The numbers of the memory and speed model: fitted constants, and those that follow from units and formats.

CREATE OR REPLACE MACRO constants() AS TABLE
SELECT c.calibration, c AS k
FROM (
    PIVOT main.model_constants
    ON name IN constant_name
    USING max(value)
    GROUP BY calibration
) AS c;
COMMENT ON MACRO TABLE constants IS
    'Fitted and fixed constants of the memory and speed model, one row per calibration: k.gemm_efficiency and so on, a struct. Units and meaning: catalog/model_parameters.csv.';

CREATE OR REPLACE MACRO gpu_family(architecture, segment) AS
    split_part(architecture, ' ', 1) || ' ' || segment;
COMMENT ON FUNCTION gpu_family IS 'The generation and market of a GPU: GPUs that share both have similar matrix-product efficiency.';

CREATE OR REPLACE MACRO gemm_share(watts_per_tflop, at_one_watt, exponent) AS
    at_one_watt * pow(watts_per_tflop, exponent);
COMMENT ON FUNCTION gemm_share IS
    'Expected share of the dense 16-bit datasheet peak that large matrix products reach, by watts per datasheet TFLOP: cards short of power stay below their datasheet. Regression over the measured cards of gpus.csv.';

CREATE OR REPLACE MACRO gemm_families() AS TABLE
SELECT
    c.calibration,
    gpu_family(g.architecture, g.segment) AS family,
    -- A card that exactly meets the expectation is added, so that families of few cards stay nearer to it.
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
    'By how much the measured cards of a family exceed gemm_share, as a logarithm, by calibration.';

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
    'Measured rate of large 16-bit matrix products on an A100 SXM (catalog/gpus.csv), FLOP/s: the reference of gemm_exponent and attention_exponent.';

CREATE OR REPLACE MACRO h100_gemm_flops() AS 795e12;
COMMENT ON FUNCTION h100_gemm_flops IS
    'Measured rate of large 16-bit matrix products on an H100 SXM (catalog/gpus.csv), FLOP/s, beyond which kernels of flash attention 2 get no faster.';

CREATE OR REPLACE MACRO pcie_bytes_per_second(generation) AS 4e9 * pow(2, generation - 1);
COMMENT ON FUNCTION pcie_bytes_per_second IS
    'Bytes per second of 16 PCI Express lanes in one direction: about 4 GB/s in the first generation, doubling with each later one.';

CREATE OR REPLACE MACRO network_bytes_per_second(gbps) AS gbps * 0.125e9;
COMMENT ON FUNCTION network_bytes_per_second IS 'Gbit/s as bytes per second.';

CREATE OR REPLACE MACRO ethernet_gbps() AS 400e0;
COMMENT ON FUNCTION ethernet_gbps IS
    'Network of a node whose cards have no NVLink, Gbit/s. Assumed: one port of 400 Gbit/s Ethernet.';

CREATE OR REPLACE MACRO most_above_datasheet() AS 1.05e0;
COMMENT ON FUNCTION most_above_datasheet IS
    'Highest ratio of large matrix products to the datasheet for a card without a measurement. Assumed.';

CREATE OR REPLACE MACRO narrow_format_share() AS 0.95e0;
COMMENT ON FUNCTION narrow_format_share IS
    'Highest share of their own datasheet peak that fp8 and fp4 products reach. Assumed.';

CREATE OR REPLACE MACRO adamw_fp32_bytes() AS 28e0;
COMMENT ON FUNCTION adamw_fp32_bytes IS
    'Bytes that a step of AdamW in fp32 moves per parameter: it reads weight, gradient and both moments, and writes weight and both moments, 7 x 4 bytes.';
