-- Whether a job fits on a GPU, the parts of the memory it needs, and two GPUs side by side.

CREATE OR REPLACE MACRO gpu_readings(wanted) AS TABLE
WITH _gpu_wanted AS (
    SELECT name_key(wanted) AS key, short_key('gpu', name_key(wanted)) AS base_key
),

_gpu_found AS (
    SELECT
        coalesce(
            any_value(n.meanings) FILTER (n.key = w.key), any_value(n.meanings) FILTER (n.key = w.base_key)
        ) AS meant,
        arg_max(n.name, jaro_winkler_similarity(n.key, w.key), 3)
            FILTER (is_near_name(n.key, w.key)) AS nearest,
        w.key, w.base_key
    FROM _gpu_wanted AS w
    LEFT JOIN main.job_names AS n ON n.setting = 'gpu'
    GROUP BY w.key, w.base_key
),

_gpu_cards AS (
    SELECT
        f.*, cards_meant(o.cards, f.meant, f.base_key) AS family,
        scope_refusal('gpu', wanted, s.entries) AS out_of_scope
    FROM _gpu_found AS f
    CROSS JOIN card_offers() AS o
    CROSS JOIN (SELECT list(e) AS entries FROM main.out_of_scope AS e) AS s
)

SELECT
    meant AS cards,
    usual_card(family) AS gpu_id,
    other_cards(family) AS other_cards,
    CASE
        WHEN gpu_id IS NOT NULL THEN NULL
        WHEN len(meant) > 1 THEN several_models_text(wanted, family)
        WHEN out_of_scope IS NOT NULL THEN out_of_scope
        WHEN key <> '' THEN 'no gpu ' || wanted || nearest_names_text(nearest, 'gpus')
        ELSE 'name a GPU; gpufare gpus lists them'
    END AS refusal
FROM _gpu_cards;
COMMENT ON MACRO TABLE gpu_readings IS
    'What a name that a job may use for a GPU (job_names) means: cards, all that the name means; and where one card is wanted, gpu_id, other_cards (the rest of its family, those with the most offers first) and refusal. A gpu_id means that card alone; a family means its card that most current offers have (usual_card).';

CREATE OR REPLACE MACRO one_gpu(wanted) AS (
    SELECT CASE WHEN r.refusal IS NULL THEN r.gpu_id ELSE error(r.refusal) END
    FROM gpu_readings(wanted) AS r
);
COMMENT ON FUNCTION one_gpu IS
    'The gpu_id of a card, given any name that a job may use for the card (gpu_readings). Raises an error that lists the cards of a family of several models, or the names nearest to an unknown name.';

CREATE OR REPLACE MACRO planned_gpus(gpus) AS
    CASE
        WHEN coalesce(list_contains(planned_counts(), try_cast(gpus AS DOUBLE)), FALSE)
            THEN try_cast(gpus AS INTEGER)
        ELSE error(
            'plans are for '
            || regexp_replace(array_to_string(planned_counts()::INTEGER[], ', '), ', (\d+)$', ' and \1')
            || ' GPUs, not for ' || coalesce(gpus::VARCHAR, 'null')
        )
    END;
COMMENT ON FUNCTION planned_gpus IS 'The given number of GPUs, if it is one of planned_counts; raises an error otherwise.';

CREATE OR REPLACE MACRO sequence_tokens(tokens) AS
    CASE
        WHEN is_number_in(tokens::VARCHAR, 1, 1e9, TRUE) THEN try_cast(tokens AS INTEGER)
        ELSE error(number_refusal('tokens_per_sequence', tokens::VARCHAR, 1e0, 1e9, TRUE))
    END;
COMMENT ON FUNCTION sequence_tokens IS
    'The given number of tokens per sequence, or null; raises an error if the number is not a whole number from 1 to 1e9.';

CREATE OR REPLACE MACRO fits(
    wanted_model, wanted_method, wanted_gpu, gpus := 1, tokens_per_sequence := NULL, rank_of_adapters := NULL
) AS TABLE
WITH _fits_asked AS (
    SELECT
        'fits' AS job, wanted_model AS model, wanted_method AS method, 1e0 AS tokens,
        sequence_tokens(tokens_per_sequence) AS seq_len, rank_of_adapters AS lora_rank,
        planned_gpus(gpus) AS gpus
),

_fits_jobs AS (
    SELECT * FROM completed_jobs('_fits_asked')
)

SELECT p.* EXCLUDE (job)
FROM job_plans('_fits_jobs') AS p
WHERE p.gpu_id = one_gpu(wanted_gpu) AND p.gpu_count = planned_gpus(gpus);
COMMENT ON MACRO TABLE fits IS
    'Does a training job fit on a GPU? fits(model, method, gpu, gpus := 1, tokens_per_sequence := NULL, rank_of_adapters := NULL) returns the job''s plan with the columns of plans: verdict, memory in GiB term by term, speed, and infeasible_reason. memory_parts shows how the memory adds up; largest_micro_batches gives the largest micro-batches that fit. Tokens per sequence and the rank of adapters default to the values in job_settings. Any names that jobs accept may be used (see job_names and, for the GPU, one_gpu); unknown names, a family of several models and numbers out of bounds raise an error. No row is returned if the GPU''s specifications are incomplete, or if the job would need several machines and the planner does not combine machines with that GPU.';

CREATE OR REPLACE MACRO fits_on(wanted_gpu, gpus := 1, tokens_per_sequence := NULL) AS TABLE
WITH _fits_on_jobs AS (
    SELECT
        concat_ws(' ', m.model, t.method) AS job, m.model, m.params_total / 1e9 AS params_billion, t.method,
        coalesce(sequence_tokens(tokens_per_sequence), d.seq_len) AS seq_len, t.lora_rank,
        planned_gpus(gpus) AS max_gpus,
        [one_gpu(wanted_gpu)] AS planned_gpus
    FROM main.models AS m
    CROSS JOIN grid_methods() AS t
    CROSS JOIN plan_defaults() AS d
    WHERE coalesce(m.max_context >= coalesce(sequence_tokens(tokens_per_sequence), d.seq_len), TRUE)
),

_fits_on_ready AS (
    SELECT j.job, p.*
    FROM grid_plans() AS p
    JOIN _fits_on_jobs AS j
        ON j.model = p.model AND j.method = p.method AND j.seq_len = p.seq_len
        AND j.lora_rank IS NOT DISTINCT FROM p.lora_rank
),

-- Jobs for which the file contains no plans are planned now.
_fits_on_unplanned AS (
    SELECT * EXCLUDE (params_billion)
    FROM _fits_on_jobs
    ANTI JOIN _fits_on_ready USING (job)
),

_fits_on_plans AS (
    FROM _fits_on_ready
    UNION ALL BY NAME
    FROM plans_for('_fits_on_unplanned')
),

_fits_on_gpu AS (
    SELECT one_gpu(wanted_gpu) AS gpu_id, planned_gpus(gpus) AS gpu_count
)

SELECT
    j.model, j.params_billion, j.method, coalesce(p.verdict, 'does_not_fit') AS verdict,
    p.fit_probability, p.memory_gib, p.usable_memory_gib, p.micro_batch, p.checkpointing, p.sharding,
    p.tokens_per_second, p.evidence, p.assumptions
FROM _fits_on_jobs AS j
CROSS JOIN _fits_on_gpu AS g
LEFT JOIN _fits_on_plans AS p ON p.job = j.job AND p.gpu_id = g.gpu_id AND p.gpu_count = g.gpu_count
ORDER BY j.params_billion, j.model, j.method;
COMMENT ON MACRO TABLE fits_on IS
    'Which models can be trained on a GPU, by method (full, and lora and qlora with the default rank)? fits_on(gpu, gpus := 1, tokens_per_sequence := NULL) returns one row per model and method: the verdict, P(fits), and the fastest plan on that number of GPUs. If tokens_per_sequence is null, the default of job_settings applies. Models whose context is shorter than the sequences are skipped. The GPU may be given by any name that jobs accept (one_gpu); unknown names, a family of several models and numbers out of bounds raise an error. The query is fast if the file already contains the plans (grid_plans).';

CREATE OR REPLACE MACRO memory_parts(plans) AS TABLE
WITH _parts_plans AS (
    SELECT
        job, gpu_id, gpu_count,
        round(memory_gib, 2)::DECIMAL(12, 2) AS peak,
        round(weights_gib, 2)::DECIMAL(12, 2) AS weights,
        round(adapter_gib, 2)::DECIMAL(12, 2) AS adapters,
        round(optimizer_gib, 2)::DECIMAL(12, 2) AS optimizer,
        -- Before the backward pass ends, gradients count only if they are accumulated over micro-steps.
        CASE
            WHEN grad_accum > 1 OR peak_phase IN ('end of backward', 'optimizer step')
                THEN round(gradients_gib, 2)
            ELSE 0
        END::DECIMAL(12, 2) AS gradients,
        round(fragmentation_gib, 2)::DECIMAL(12, 2) AS kept,
        round(overhead_gib, 2)::DECIMAL(12, 2) AS process,
        nullif(round(memory_gib - memory_gib / own_memory_factor(assumptions), 2), 0)::DECIMAL(12, 2) AS own,
        round(usable_memory_gib - memory_margin_gib, 2)::DECIMAL(12, 2) AS needed
    FROM query_table(plans)
    WHERE memory_gib IS NOT NULL
),

_parts_listed AS (
    SELECT
        job, gpu_id, gpu_count,
        unnest([
            {'place': 1, 'part': 'weights', 'gib': weights},
            {'place': 2, 'part': 'adapters', 'gib': adapters},
            {'place': 3, 'part': 'gradients', 'gib': gradients},
            {'place': 4, 'part': 'optimizer', 'gib': optimizer},
            {
                'place': 5, 'part': 'activations',
                'gib': peak - weights - adapters - gradients - optimizer - kept - process - coalesce(own, 0)
            },
            {'place': 6, 'part': 'kept', 'gib': kept},
            {'place': 7, 'part': 'process', 'gib': process},
            {'place': 8, 'part': 'own', 'gib': own},
            {'place': 9, 'part': 'peak', 'gib': peak},
            {'place': 10, 'part': 'margin', 'gib': needed - (peak - kept)},
            {'place': 11, 'part': 'needed', 'gib': needed}
        ], recursive := TRUE)
    FROM _parts_plans
)

FROM _parts_listed
WHERE gib IS NOT NULL
ORDER BY job, gpu_id, gpu_count, place;
COMMENT ON MACRO TABLE memory_parts IS
    'The parts that add up to the peak memory of each plan, and the least memory that the plan needs, in GiB per GPU rounded to a hundredth: job, gpu_id, gpu_count, place, part and gib. Parts: weights, adapters, gradients (those in memory at the peak), optimizer, activations (including logits and everything else in memory at the peak), kept (held by the allocator but not in use), process (driver and libraries), own (what own runs add or take away; only if they correct the plan), peak (the sum of the preceding parts), margin (needed beyond the memory in use, because memory is lost in the gaps between tensors) and needed (peak plus margin, minus kept). plans: rows of job_plans, or rows of plans with a column job.';

CREATE OR REPLACE MACRO micro_batches_tried() AS range(1, 257);
COMMENT ON FUNCTION micro_batches_tried IS 'The micro-batches tried in the search for the largest one that fits. Assumed.';

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
    CROSS JOIN (SELECT unnest(micro_batches_tried())::DOUBLE AS micro_batch) AS m
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
    five_digits(s.tokens_per_second_per_gpu * l.gpu_count) AS tokens_per_second
FROM _micro_largest AS l
JOIN speed_of('_micro_chosen') AS s USING (job)
ORDER BY l.of_job, gpu_id, l.gpu_count, l.micro_batch DESC, tokens_per_second DESC;
COMMENT ON MACRO TABLE largest_micro_batches IS
    'For each plan and kind of checkpointing, the largest micro-batch (sequences per GPU and micro-step, out of micro_batches_tried) whose P(fits) is at least the min_fit_probability of plan_defaults, together with the peak memory in GiB per GPU, P(fits), and tokens per second on all GPUs together. All other settings are those of the plan. There is no row if not even one sequence fits with that probability. plans: rows of job_plans, or rows of plans with a column job.';

CREATE OR REPLACE MACRO compare_gpus(one, other) AS TABLE
WITH _asked_gpus AS (
    SELECT one_gpu(one) AS one_id, one_gpu(other) AS other_id
),

_facts AS (
    UNPIVOT (
        SELECT gpu_id AS _gpu, COLUMNS(* EXCLUDE (gpu_id))::VARCHAR
        FROM main.gpu_compare
        SEMI JOIN _asked_gpus ON gpu_id IN (one_id, other_id)
    )
    ON COLUMNS(* EXCLUDE (_gpu)) INTO NAME fact VALUE value
)

SELECT
    c.column_name AS fact,
    max(f.value) FILTER (f._gpu = k.one_id) AS one_value,
    max(f.value) FILTER (f._gpu = k.other_id) AS other_value,
    c.comment AS meaning
FROM _facts AS f
CROSS JOIN _asked_gpus AS k
JOIN duckdb_columns() AS c
    ON c.table_name = 'gpu_compare' AND c.schema_name = 'main' AND c.database_name = current_database()
    AND c.column_name = f.fact
GROUP BY c.comment, c.column_name, c.column_index
ORDER BY c.column_index;
COMMENT ON MACRO TABLE compare_gpus IS
    'Two GPUs side by side: compare_gpus(one, other) returns one row per column of gpu_compare that has a value for at least one of the two GPUs, with both values as text. A GPU may be given by any name that jobs accept (one_gpu); unknown names and families of several models raise an error.';
