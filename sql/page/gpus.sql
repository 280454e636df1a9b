SELECT
    g.gpu_id, gpu_name(g.model, g.form_factor, g.memory_gb) AS name, g.vendor, g.architecture, g.year,
    g.memory_gb, g.memory_type, g.bandwidth_gb_s, g.bf16_dense_tflops,
    g.fp8_dense_tflops, g.gemm_bf16_measured_tflops, g.nvlink_gb_s,
    g.tdp_w, g.has_full_specs,
    is_other_platform(g.vendor, g.form_factor, g.bf16_dense_tflops) AS is_other_platform,
    g.gpu_id IN (SELECT r.gpu_id FROM main.rentals AS r) AS is_rented, c.card.open_id AS open_id
FROM main.gpus AS g
LEFT JOIN (SELECT unnest(cards) AS card FROM card_offers()) AS c ON c.card.gpu_id = g.gpu_id
ORDER BY is_rented DESC, g.gpu_id
