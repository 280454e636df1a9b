-- What is the smallest card on which each model can be trained, by method, with sequences of 2,048 tokens?
SELECT model, method, lora_rank, least_memory_gib, settings, minimum_gpu_id,
    minimum_fit_probability, recommended_gpu_id, fewest_h100_80gb, fewest_rtx_4090
FROM vram_requirements
WHERE seq_len = 2048
ORDER BY params_billion, model, method, lora_rank
