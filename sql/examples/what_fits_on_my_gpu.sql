-- Which models can I fine-tune on one RTX 4090, and how?
SELECT
    model, params_billion, method, fit_probability, memory_gib, micro_batch, checkpointing, tokens_per_second
FROM fits_on('rtx-4090')
WHERE verdict = 'fits'
ORDER BY params_billion DESC, method
