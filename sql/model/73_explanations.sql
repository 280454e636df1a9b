-- Short questions at a SQL prompt, and why an answer is what it is: by the same macros as the tables.

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
    'Does a training job fit on a GPU? fits(model, method, gpu_id, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16) gives the row of plans: verdict, memory in GiB term by term, speed, and infeasible_reason. memory_parts adds its terms up, largest_micro_batches says how far the micro-batch goes. Unknown names raise an error. No row: the GPU''s specifications are incomplete, or that number of it is not planned.';

CREATE OR REPLACE MACRO fits_on(
    wanted_gpu, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16
) AS TABLE
WITH _fits_on_methods AS (
    SELECT unnest(['qlora', 'lora', 'full']) AS method
),

_fits_on_jobs AS (
    SELECT
        m.model || ' ' || t.method AS job, m.model, t.method, tokens_per_sequence AS seq_len,
        CASE WHEN t.method <> 'full' THEN rank_of_adapters END AS lora_rank, gpus AS max_gpus
    FROM main.models AS m
    CROSS JOIN _fits_on_methods AS t
    WHERE m.max_context IS NULL OR m.max_context >= tokens_per_sequence
),

_fits_on_gpu AS (
    SELECT CASE WHEN count(*) = 0 THEN error('No GPU ' || wanted_gpu || '; main.gpus lists them.') END
        AS found
    FROM main.gpus
    WHERE gpu_id = wanted_gpu
)

SELECT
    m.model, m.params_total / 1e9 AS params_billion, p.method, p.verdict, p.fit_probability,
    p.memory_gib, p.usable_memory_gib, p.micro_batch, p.checkpointing, p.sharding, p.tokens_per_second,
    p.evidence, p.infeasible_reason, p.assumptions
FROM plans_for('_fits_on_jobs') AS p
JOIN main.models AS m USING (model)
CROSS JOIN _fits_on_gpu AS g
WHERE p.gpu_id = wanted_gpu AND p.gpu_count = gpus AND g.found IS NULL
ORDER BY params_billion, m.model, p.memory_gib;
COMMENT ON MACRO TABLE fits_on IS
    'Which models can be trained on a GPU, by method (qlora, lora, full)? fits_on(gpu_id, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16) gives one row per model and method: the verdict, P(fits), and the plan that is fastest there. Models whose context is shorter than the sequences are left out.';

CREATE OR REPLACE MACRO memory_parts(plans) AS TABLE
WITH _parts_plans AS (
    SELECT
        job, gpu_id, gpu_count, peak_phase, verdict,
        round(memory_gib, 2)::DECIMAL(12, 2) AS peak,
        round(weights_gib, 2)::DECIMAL(12, 2) AS weights,
        round(adapter_gib, 2)::DECIMAL(12, 2) AS adapters,
        round(optimizer_gib, 2)::DECIMAL(12, 2) AS optimizer,
        -- Outside of their own phases gradients are there only while they are accumulated.
        CASE
            WHEN grad_accum > 1 OR peak_phase IN ('end of backward', 'optimizer step')
                THEN round(gradients_gib, 2)
            ELSE 0
        END::DECIMAL(12, 2) AS gradients,
        round(fragmentation_gib, 2)::DECIMAL(12, 2) AS kept,
        round(overhead_gib, 2)::DECIMAL(12, 2) AS process
    FROM query_table(plans)
    WHERE memory_gib IS NOT NULL
),

_parts_listed AS (
    SELECT
        job, gpu_id, gpu_count,
        unnest([
            {'place': 1, 'part': 'weights', 'gib': weights, 'meaning': 'of the model, on the GPU'},
            {'place': 2, 'part': 'adapters', 'gib': adapters, 'meaning': 'LoRA weights'},
            {'place': 3, 'part': 'gradients', 'gib': gradients, 'meaning': 'that are there at the peak'},
            {'place': 4, 'part': 'optimizer state', 'gib': optimizer, 'meaning': 'moments and masters'},
            {
                'place': 5, 'part': 'activations and logits',
                'gib': peak - weights - adapters - gradients - optimizer - kept - process,
                'meaning': 'all else at the peak: ' || peak_phase
            },
            {
                'place': 6, 'part': 'kept by the allocator', 'gib': kept,
                'meaning': 'not in use; given back at need'
            },
            {'place': 7, 'part': 'driver and libraries', 'gib': process, 'meaning': 'the process itself'},
            {'place': 8, 'part': 'peak memory', 'gib': peak, 'meaning': 'the sum of the above'}
        ], recursive := TRUE)
    FROM _parts_plans
)

FROM _parts_listed
ORDER BY job, gpu_id, gpu_count, place;
COMMENT ON MACRO TABLE memory_parts IS
    'Where the memory goes, in GiB per GPU to the hundredth, in parts that add up to the peak: job, gpu_id, gpu_count, place, part, gib, meaning. plans: rows of job_plans, or of plans with a column job.';

CREATE OR REPLACE MACRO largest_micro_batches(plans) AS TABLE
WITH _micro_tried AS (
    SELECT
        p.job AS of_job, p.gpu_id AS gpu, p.gpu_count, p.node_count, p.node_network_gbps, p.model, p.method,
        p.seq_len, p.lora_rank, p.lora_targets, p.quantization, p.stack, p.optimizer, p.training_precision,
        p.sharding, p.offload, c.checkpointing, m.micro_batch,
        greatest(1e0, round(p.grad_accum * p.micro_batch / m.micro_batch)) AS grad_accum,
        concat_ws(' ', p.job, p.gpu_id, p.gpu_count, c.checkpointing, m.micro_batch) AS job,
        'smi' AS memory_metric
    FROM query_table(plans) AS p
    CROSS JOIN (SELECT unnest(['none', 'sac', 'full']) AS checkpointing) AS c
    CROSS JOIN (SELECT unnest(range(1, 257))::DOUBLE AS micro_batch) AS m
    WHERE p.fit_probability > 0
),

_micro_settings AS (
    SELECT * EXCLUDE (of_job) FROM _micro_tried
),

_micro_judged AS (
    SELECT
        t.*, m.memory_gib, m.usable_memory_gib,
        fit_probability(
            m.usable_memory_gib, m.needed_gib, m.memory_gib_low / m.memory_gib,
            m.memory_gib_high / m.memory_gib
        ) AS fit_probability
    FROM memory_of('_micro_settings') AS m
    JOIN _micro_tried AS t USING (job)
),

_micro_largest AS (
    SELECT j.*
    FROM _micro_judged AS j
    CROSS JOIN plan_defaults() AS d
    WHERE j.fit_probability >= d.min_fit_probability
    QUALIFY row_number() OVER (
        PARTITION BY j.of_job, j.gpu, j.gpu_count, j.checkpointing ORDER BY j.micro_batch DESC
    ) = 1
),

_micro_chosen AS (
    SELECT * EXCLUDE (of_job, memory_gib, usable_memory_gib, fit_probability) FROM _micro_largest
)

SELECT
    l.of_job AS job, l.gpu AS gpu_id, l.gpu_count::INTEGER AS gpu_count, l.checkpointing,
    l.micro_batch::INTEGER AS micro_batch, l.sharding, l.memory_gib, l.usable_memory_gib, l.fit_probability,
    s.tokens_per_second_per_gpu * l.gpu_count AS tokens_per_second
FROM _micro_largest AS l
JOIN speed_of('_micro_chosen') AS s USING (job)
ORDER BY l.of_job, gpu_id, l.gpu_count, l.micro_batch DESC, tokens_per_second DESC;
COMMENT ON MACRO TABLE largest_micro_batches IS
    'The largest micro-batch (sequences per GPU and step, up to 256) that fits with a probability of min_fit_probability of plan_defaults, by checkpointing, with peak memory in GiB per GPU, P(fits) and tokens per second of all GPUs there. All else is as the plan has it. No row for a checkpointing with which not one sequence fits so surely. plans: rows of job_plans, or of plans with a column job.';

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
