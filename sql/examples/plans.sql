-- How fast is full fine-tuning of an 8B model on the fastest single machines, and what is the bottleneck?
SELECT p.gpu_id, p.gpu_count, p.tokens_per_second, p.bottleneck, p.micro_batch, p.sharding, p.verdict,
    p.evidence
FROM plans AS p
JOIN models AS m USING (model)
WHERE m.title LIKE 'Llama 3.1 8B' AND p.method = 'full' AND p.seq_len = 2048 AND p.node_count = 1
    AND p.verdict <> 'does_not_fit'
ORDER BY p.tokens_per_second DESC
LIMIT 10
