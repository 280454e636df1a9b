-- Why does the cheapest answer for my job cost what it does, part by part?
WITH my_jobs AS (
    SELECT 'llama-3.1-8b' AS model, 'qlora' AS method, 1e8 AS tokens, 'spot' AS kind
),

my_answers AS (
    SELECT * FROM cheapest_published('my_jobs')
)

SELECT part, usd
FROM why_total('my_answers')
WHERE rank = 1
ORDER BY place
