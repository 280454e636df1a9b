-- Which cards have 80 GB or more, how fast are they, and how much of their memory can a program use?
SELECT gpu_id, memory_gb, usable_memory_gib, bandwidth_gb_s, bf16_dense_tflops, nvlink_gb_s, year
FROM gpus
WHERE memory_gb >= 80
ORDER BY bf16_dense_tflops DESC NULLS LAST, gpu_id
