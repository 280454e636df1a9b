-- Short questions at a SQL prompt, answered by the same macros as the tables.

CREATE OR REPLACE MACRO fits(
    wanted_model, wanted_method, wanted_gpu, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16
) AS TABLE
WITH _fits_asked AS (
    SELECT
        'fits' AS job, wanted_model AS model, wanted_method AS method, 1e0 AS tokens,
        tokens_per_sequence AS seq_len, rank_of_adapters AS lora_rank, gpus AS max_gpus
),

_fits_jobs AS (
    SELECT * FROM completed_jobs('_fits_asked')
),

_fits_gpu AS (
    SELECT CASE WHEN count(*) = 0 THEN error('No GPU ' || wanted_gpu || '; main.gpus lists them.') END
        AS found
    FROM main.gpus
    WHERE gpu_id = wanted_gpu
)

SELECT p.* EXCLUDE (job)
FROM job_plans('_fits_jobs') AS p
CROSS JOIN _fits_gpu AS g
WHERE p.gpu_id = wanted_gpu AND p.gpu_count = gpus AND g.found IS NULL;
COMMENT ON MACRO TABLE fits IS
    'Does a training job fit on a GPU? fits(model, method, gpu_id, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16) gives the row of plans: verdict, memory in GiB term by term, speed, and infeasible_reason. Unknown names raise an error. No row: the GPU''s specifications are incomplete, or that number of it is not planned.';

CREATE OR REPLACE MACRO compare_gpus(one, other) AS TABLE
WITH _asked_gpus AS (
    SELECT
        CASE
            WHEN bool_or(gpu_id = one) IS NOT TRUE
                THEN error('No GPU ' || one || '; main.gpus lists them.')
            WHEN bool_or(gpu_id = other) IS NOT TRUE
                THEN error('No GPU ' || other || '; main.gpus lists them.')
            ELSE TRUE
        END AS known
    FROM main.gpu_compare
),

_facts AS (
    UNPIVOT (
        SELECT gpu_id AS _gpu, COLUMNS(* EXCLUDE (gpu_id))::VARCHAR
        FROM main.gpu_compare
        WHERE gpu_id IN (one, other)
    )
    ON COLUMNS(* EXCLUDE (_gpu)) INTO NAME fact VALUE value
)

SELECT
    c.column_name AS fact,
    max(f.value) FILTER (f._gpu = one) AS one_value,
    max(f.value) FILTER (f._gpu = other) AS other_value,
    c.comment AS meaning
FROM _facts AS f
CROSS JOIN _asked_gpus AS k
JOIN duckdb_columns() AS c
    ON c.table_name = 'gpu_compare' AND c.schema_name = 'main' AND c.database_name = current_database()
    AND c.column_name = f.fact
WHERE k.known
GROUP BY c.comment, c.column_name, c.column_index
ORDER BY c.column_index;
COMMENT ON MACRO TABLE compare_gpus IS
    'Two GPUs side by side: compare_gpus(one gpu_id, other gpu_id) gives one row per fact of gpu_compare that at least one of them has, with both values as text.';
