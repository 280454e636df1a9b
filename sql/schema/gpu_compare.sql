CREATE TABLE main.gpu_compare (
    gpu_id VARCHAR PRIMARY KEY,
    vendor VARCHAR NOT NULL,
    architecture VARCHAR,
    model VARCHAR NOT NULL,
    form_factor VARCHAR,
    memory_gb DOUBLE,
    memory_type VARCHAR,
    usable_memory_gib DOUBLE,
    bandwidth_gb_s DOUBLE,
    bf16_dense_tflops DOUBLE,
    fp16_dense_tflops DOUBLE,
    fp8_dense_tflops DOUBLE,
    fp4_dense_tflops DOUBLE,
    fp32_tflops DOUBLE,
    gemm_bf16_measured_tflops DOUBLE,
    tdp_w DOUBLE,
    year INTEGER,
    nvlink_gb_s DOUBLE,
    segment VARCHAR,
    on_demand_usd_per_gpu_hour DECIMAL(18, 8),
    on_demand_provider VARCHAR,
    on_demand_providers INTEGER NOT NULL,
    flex_start_usd_per_gpu_hour DECIMAL(18, 8),
    flex_start_provider VARCHAR,
    spot_usd_per_gpu_hour DECIMAL(18, 8),
    spot_provider VARCHAR,
    spot_providers INTEGER NOT NULL,
    reserved_usd_per_gpu_hour DECIMAL(18, 8),
    reserved_provider VARCHAR,
    reserved_term_days INTEGER,
    reserved_providers INTEGER NOT NULL,
    serverless_usd_per_gpu_hour DECIMAL(18, 8),
    serverless_provider VARCHAR,
    providers INTEGER NOT NULL,
    on_demand_usd_per_gb_hour DOUBLE,
    on_demand_usd_per_bf16_tflop_hour DOUBLE,
    reference_workload VARCHAR,
    reference_tokens_per_second DOUBLE,
    reference_tokens_per_usd DOUBLE,
    sheet_day DATE NOT NULL
);

COMMENT ON TABLE main.gpu_compare IS 'The GPUs side by side: specifications, cheapest prices per GPU and hour, number of providers, and what a reference job costs.';
COMMENT ON COLUMN main.gpu_compare.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.gpu_compare.vendor IS 'Manufacturer.';
COMMENT ON COLUMN main.gpu_compare.architecture IS 'Chip generation.';
COMMENT ON COLUMN main.gpu_compare.model IS 'Model without form factor and memory.';
COMMENT ON COLUMN main.gpu_compare.form_factor IS 'SXM, PCIe, NVL, OAM, superchip; null where it has only one or is not known.';
COMMENT ON COLUMN main.gpu_compare.memory_gb IS 'Nominal memory per GPU in GB.';
COMMENT ON COLUMN main.gpu_compare.memory_type IS 'GDDR6, HBM2e, HBM3 and so on.';
COMMENT ON COLUMN main.gpu_compare.usable_memory_gib IS 'Memory available to a program, in GiB.';
COMMENT ON COLUMN main.gpu_compare.bandwidth_gb_s IS 'Memory bandwidth in 10^9 bytes per second.';
COMMENT ON COLUMN main.gpu_compare.bf16_dense_tflops IS 'Dense bf16 peak in 10^12 operations per second; null means none.';
COMMENT ON COLUMN main.gpu_compare.fp16_dense_tflops IS 'Dense fp16 peak in 10^12 operations per second.';
COMMENT ON COLUMN main.gpu_compare.fp8_dense_tflops IS 'Dense fp8 peak in 10^12 operations per second; null means none.';
COMMENT ON COLUMN main.gpu_compare.fp4_dense_tflops IS 'Dense fp4 peak in 10^12 operations per second; null means none.';
COMMENT ON COLUMN main.gpu_compare.fp32_tflops IS 'fp32 peak outside the matrix units in 10^12 operations per second.';
COMMENT ON COLUMN main.gpu_compare.gemm_bf16_measured_tflops IS 'Best measured bf16 matrix product in 10^12 operations per second.';
COMMENT ON COLUMN main.gpu_compare.tdp_w IS 'Board power in watts.';
COMMENT ON COLUMN main.gpu_compare.year IS 'Year of release.';
COMMENT ON COLUMN main.gpu_compare.nvlink_gb_s IS 'NVLink or Infinity Fabric bandwidth in 10^9 bytes per second; null means none.';
COMMENT ON COLUMN main.gpu_compare.segment IS 'datacenter, workstation, consumer, legacy and the like.';
COMMENT ON COLUMN main.gpu_compare.on_demand_usd_per_gpu_hour IS 'Cheapest ranked on-demand price in USD per GPU and hour.';
COMMENT ON COLUMN main.gpu_compare.on_demand_provider IS 'Provider with that price.';
COMMENT ON COLUMN main.gpu_compare.on_demand_providers IS 'Providers with a ranked on-demand price.';
COMMENT ON COLUMN main.gpu_compare.flex_start_usd_per_gpu_hour IS 'Cheapest ranked flex-start price in USD per GPU and hour.';
COMMENT ON COLUMN main.gpu_compare.flex_start_provider IS 'Provider with that price.';
COMMENT ON COLUMN main.gpu_compare.spot_usd_per_gpu_hour IS 'Cheapest ranked spot price in USD per GPU and hour.';
COMMENT ON COLUMN main.gpu_compare.spot_provider IS 'Provider with that price.';
COMMENT ON COLUMN main.gpu_compare.spot_providers IS 'Providers with a ranked spot price.';
COMMENT ON COLUMN main.gpu_compare.reserved_usd_per_gpu_hour IS 'Cheapest ranked reserved price in USD per GPU and hour.';
COMMENT ON COLUMN main.gpu_compare.reserved_provider IS 'Provider with that price.';
COMMENT ON COLUMN main.gpu_compare.reserved_term_days IS 'Its term in days.';
COMMENT ON COLUMN main.gpu_compare.reserved_providers IS 'Providers with a ranked reserved price.';
COMMENT ON COLUMN main.gpu_compare.serverless_usd_per_gpu_hour IS 'Cheapest ranked serverless price in USD per GPU and hour, host not included.';
COMMENT ON COLUMN main.gpu_compare.serverless_provider IS 'Provider with that price.';
COMMENT ON COLUMN main.gpu_compare.providers IS 'Providers with any ranked price.';
COMMENT ON COLUMN main.gpu_compare.on_demand_usd_per_gb_hour IS 'Cheapest on-demand price per GB of memory and hour, in USD.';
COMMENT ON COLUMN main.gpu_compare.on_demand_usd_per_bf16_tflop_hour IS 'Cheapest on-demand price per 10^12 dense bf16 operations per second and hour, in USD; null without bf16.';
COMMENT ON COLUMN main.gpu_compare.reference_workload IS 'The reference job, key into workloads.';
COMMENT ON COLUMN main.gpu_compare.reference_tokens_per_second IS 'Speed of that job on one GPU in tokens per second; null where it does not fit.';
COMMENT ON COLUMN main.gpu_compare.reference_tokens_per_usd IS 'Tokens of that job per USD at the cheapest on-demand price of one GPU, without set-up.';
COMMENT ON COLUMN main.gpu_compare.sheet_day IS 'Day of the prices.';
