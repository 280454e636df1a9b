-- Where does the memory of QLoRA on an 8B model on one RTX 4090 go, in parts that add up?
WITH my_plan AS (
    SELECT 'mine' AS job, * FROM fits('llama-3.1-8b', 'qlora', 'rtx-4090')
)

SELECT part, gib
FROM memory_parts('my_plan')
ORDER BY place
