-- Where do two quotes and my own card rank for my job, and why is one of them not ranked?
WITH my_jobs AS (
    SELECT
        'llama-3.1-8b' AS model, 'qlora' AS method, 1e8 AS tokens, 8 AS gpus,
        '8 x h100-sxm-80gb at 1.50; 16 x l40s at 0.50' AS quote, '1 x rtx-3090 at 0.12' AS own
)

SELECT machine, rank, ranks, total_usd, hours, reason, missed
FROM machine_ranks_for('my_jobs')
