-- Which parts add up to the memory that QLoRA on an 8B model needs on one RTX 4090?
WITH my_plan AS (
    SELECT 'mine' AS job, * FROM fits('llama-3.1-8b', 'qlora', 'rtx-4090')
)

SELECT part, gib
FROM memory_parts('my_plan')
ORDER BY place
