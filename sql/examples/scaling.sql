-- What do 2, 4 and 8 H100s gain over a single H100 in the 13B scenario?
SELECT gpu_count, train_hours, efficiency, total_usd, cost_ratio
FROM scaling
WHERE workload = '13b-lora-10b-tokens' AND gpu_id = 'h100-sxm-80gb'
ORDER BY gpu_count
