SELECT
    g.gpu_id, gpu_name(g.model, g.form_factor, g.memory_gb) AS name, g.vendor, g.architecture, g.year,
    g.segment, g.memory_gb, g.memory_type, g.usable_memory_gib, g.bandwidth_gb_s, g.bf16_dense_tflops,
    g.fp16_dense_tflops, g.fp8_dense_tflops, g.gemm_bf16_measured_tflops, g.nvlink_gb_s, g.tdp_w,
    g.gpu_id IN (SELECT r.gpu_id FROM main.rentals AS r) AS is_rented
FROM main.gpus AS g
ORDER BY is_rented DESC, g.gpu_id
