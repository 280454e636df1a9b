SELECT
    title, model, method, tokens, examples, tokens_per_example, epochs, seq_len, lora_rank,
    max_gpus AS gpus, max_hours
FROM main.workloads
WHERE scenario
ORDER BY title
