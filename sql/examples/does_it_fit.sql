-- Does QLoRA on a 70B model fit on one L40S, and where does the memory go?
SELECT
    verdict, fit_probability, memory_gib, usable_memory_gib, memory_margin_gib, micro_batch, checkpointing,
    weights_gib, adapter_gib, activations_gib, logits_gib, tokens_per_second, infeasible_reason
FROM fits('llama-3.1-70b', 'qlora', 'l40s')
