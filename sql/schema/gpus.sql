CREATE TABLE main.gpus (
    gpu_id VARCHAR PRIMARY KEY,
    vendor VARCHAR NOT NULL,
    architecture VARCHAR,
    model VARCHAR NOT NULL,
    form_factor VARCHAR,
    memory_gb DOUBLE,
    memory_type VARCHAR,
    bandwidth_gb_s DOUBLE,
    bf16_dense_tflops DOUBLE,
    fp16_dense_tflops DOUBLE,
    fp8_dense_tflops DOUBLE,
    fp4_dense_tflops DOUBLE,
    fp32_tflops DOUBLE,
    gemm_bf16_measured_tflops DOUBLE,
    gemm_fp16_measured_tflops DOUBLE,
    tdp_w DOUBLE,
    year INTEGER,
    nvlink_gb_s DOUBLE,
    nvlink_topology VARCHAR,
    pcie_gen DOUBLE,
    peer_to_peer BOOLEAN,
    max_gpus_per_node INTEGER,
    segment VARCHAR,
    usable_memory_gib DOUBLE,
    has_full_specs BOOLEAN NOT NULL,
    named_without_memory BOOLEAN,
    gpus_per_board INTEGER,
    derived_from VARCHAR,
    source VARCHAR,
    confidence VARCHAR,
    notes VARCHAR
);

COMMENT ON TABLE main.gpus IS 'The GPUs that clouds rent, one row per card: vendor, model, form factor and memory distinguish cards. From catalog/gpus.csv; dense peaks only, never sparse ones.';
COMMENT ON COLUMN main.gpus.gpu_id IS 'Key, lower case, for example a100-sxm-80gb. A family id such as a100-80gb is for cards whose form factor the offer does not state.';
COMMENT ON COLUMN main.gpus.vendor IS 'Manufacturer.';
COMMENT ON COLUMN main.gpus.architecture IS 'Chip generation.';
COMMENT ON COLUMN main.gpus.model IS 'Model without form factor and memory, for example A100.';
COMMENT ON COLUMN main.gpus.form_factor IS 'SXM, PCIe, NVL, OAM, superchip; null where the model has only one or the offer does not state it.';
COMMENT ON COLUMN main.gpus.memory_gb IS 'Nominal memory per GPU in GB, as the vendor counts it.';
COMMENT ON COLUMN main.gpus.memory_type IS 'GDDR6, HBM2e, HBM3 and so on.';
COMMENT ON COLUMN main.gpus.bandwidth_gb_s IS 'Memory bandwidth in 10^9 bytes per second.';
COMMENT ON COLUMN main.gpus.bf16_dense_tflops IS 'Dense bf16 matrix peak in 10^12 operations per second; null means the card has no bf16.';
COMMENT ON COLUMN main.gpus.fp16_dense_tflops IS 'Dense fp16 matrix peak in 10^12 operations per second.';
COMMENT ON COLUMN main.gpus.fp8_dense_tflops IS 'Dense fp8 matrix peak in 10^12 operations per second; null means none.';
COMMENT ON COLUMN main.gpus.fp4_dense_tflops IS 'Dense fp4 matrix peak in 10^12 operations per second; null means none.';
COMMENT ON COLUMN main.gpus.fp32_tflops IS 'fp32 peak outside the matrix units in 10^12 operations per second.';
COMMENT ON COLUMN main.gpus.gemm_bf16_measured_tflops IS 'Best published measurement of a bf16 matrix product, in 10^12 operations per second.';
COMMENT ON COLUMN main.gpus.gemm_fp16_measured_tflops IS 'Best published measurement of an fp16 matrix product, in 10^12 operations per second, or of a sibling with the same chip, scaled by the peaks, where notes say so.';
COMMENT ON COLUMN main.gpus.tdp_w IS 'Board power in watts.';
COMMENT ON COLUMN main.gpus.year IS 'Year of release.';
COMMENT ON COLUMN main.gpus.nvlink_gb_s IS 'Bandwidth to the other GPUs of the node over NVLink or Infinity Fabric, both directions, in 10^9 bytes per second; null means none.';
COMMENT ON COLUMN main.gpus.nvlink_topology IS 'switched (all GPUs of a node), mesh or bridge (pairs); null means none.';
COMMENT ON COLUMN main.gpus.pcie_gen IS 'PCI Express generation.';
COMMENT ON COLUMN main.gpus.peer_to_peer IS 'GPUs of a node can copy directly to each other.';
COMMENT ON COLUMN main.gpus.max_gpus_per_node IS 'The most of these GPUs that one machine has.';
COMMENT ON COLUMN main.gpus.segment IS 'datacenter, workstation, consumer, legacy and the like.';
COMMENT ON COLUMN main.gpus.usable_memory_gib IS 'Memory available to a program, in GiB.';
COMMENT ON COLUMN main.gpus.has_full_specs IS 'Whether the specifications are complete. A card without them has prices but no plans.';
COMMENT ON COLUMN main.gpus.named_without_memory IS 'Whether sellers mean this memory size when they state none.';
COMMENT ON COLUMN main.gpus.gpus_per_board IS 'GPUs on one board; specifications are per GPU.';
COMMENT ON COLUMN main.gpus.derived_from IS 'Card whose specifications a family id uses: its slowest member; null for a single card.';
COMMENT ON COLUMN main.gpus.source IS 'Where the specifications are from.';
COMMENT ON COLUMN main.gpus.confidence IS 'How reliable they are.';
COMMENT ON COLUMN main.gpus.notes IS 'Remarks.';
