-- The cheapest ways to run a user's own jobs, jobs with published plans, and the catalogue's workloads.

CREATE OR REPLACE MACRO job_plans(jobs) AS TABLE
WITH _job_settings AS (
    SELECT COLUMNS(lambda name: list_contains(plan_columns(), name))
    FROM query_table(jobs)
)

SELECT
    p.* REPLACE (
        j.method AS method,
        j.lora_rank AS lora_rank,
        -- Training from scratch downloads no model.
        CASE WHEN j.method = 'pretrain' THEN 0e0 ELSE p.model_download_gib END AS model_download_gib
    )
FROM plans_for('_job_settings') AS p
JOIN _job_settings AS j USING (job);
COMMENT ON MACRO TABLE job_plans IS
    'The rows of plans_for, with the method and rank as written in the job. jobs needs the columns job, method and lora_rank; columns that the planner does not read are ignored.';

CREATE OR REPLACE MACRO with_rented_gpus(jobs) AS TABLE
SELECT
    *,
    list_concat(
        (SELECT list(DISTINCT r.gpu_id) FROM main.rentals AS r),
        list_transform(machines, lambda machine: machine.gpu_id)
    ) AS planned_gpus
FROM query_table(jobs);
COMMENT ON MACRO TABLE with_rented_gpus IS
    'Jobs with the column planned_gpus for job_plans: the GPUs that can occur in an answer, because a provider rents them out or because the job names a machine that has them. jobs: rows of completed_jobs.';

CREATE OR REPLACE MACRO cheapest_for(jobs) AS TABLE
WITH _cheapest_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_cheapest_rented AS (
    SELECT * FROM with_rented_gpus('_cheapest_jobs')
),

_cheapest_plans AS (
    SELECT * FROM job_plans('_cheapest_rented')
)

FROM ranked_jobs('_cheapest_jobs', '_cheapest_plans')
ORDER BY job, rank;
COMMENT ON MACRO TABLE cheapest_for IS
    'The ways to run your own jobs, ranked, with the cost in USD of finishing each job at the published prices. Each combination of price kind, GPU, number of GPUs, source, tier and term has one row: its best offer, and the safest answer, if it is another. Specify GPUs, providers, places and so on in the columns of jobs, not in a WHERE on the answer: the answer might not contain the offers that you are filtering for. A ranking contains the answers that finish within max_hours, by default a week. If no answer finishes within the default, meets_deadline is false, and the ranking contains the fastest answer and the answers that take only a little longer. longer_wait_usd is what the job costs if you can wait longer. jobs: the name of a table or CTE; see completed_jobs for its columns. Rankings by time compare hours rounded to a hundredth. Ties are broken by lower cost, then fewer hours, then fewer GPUs, and then by gpu_id, source, tier, region, instance type and label in alphabetical order. The columns are those of cheapest_gpu_per_workload.';

CREATE OR REPLACE MACRO plans_at_hand(jobs) AS TABLE
SELECT j.job, p.*
FROM query_table(jobs) AS j
JOIN plan_defaults() AS d ON d.min_fit_probability = j.min_fit_probability
JOIN grid_plans() AS p
    ON p.model = j.model AND p.method = j.method AND p.seq_len = j.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM j.lora_rank
WHERE coalesce(
        j.lora_targets, j.micro_batch::VARCHAR, j.global_batch_tokens::VARCHAR, j.checkpointing, j.offload,
        j.stack, j.optimizer, j.training_precision, j.quantization
    ) IS NULL;
COMMENT ON MACRO TABLE plans_at_hand IS
    'The published plans for jobs (see grid_plans): the rows of job_plans, read from the file instead of being planned, and without the memory and time terms. A job without published plans has no row: plans are published for the models, methods, sequence lengths and ranks in the grid, with all other settings left open. jobs: rows of completed_jobs.';

CREATE OR REPLACE MACRO published_plans(jobs) AS TABLE
SELECT
    CASE
        WHEN p.job IS NULL THEN error(
            'Job ' || j.job || ': no plans are published for ' || concat_ws(
                ', ', j.model || ' ' || j.method, 'sequences of ' || j.seq_len, 'lora_rank ' || j.lora_rank
            ) || ' and its other settings; cheapest_for plans any job'
        )
        ELSE j.job
    END AS job,
    p.* EXCLUDE (job)
FROM query_table(jobs) AS j
LEFT JOIN plans_at_hand(jobs) AS p USING (job);
COMMENT ON MACRO TABLE published_plans IS
    'The rows of plans_at_hand; a job without published plans raises an error that names the job.';

CREATE OR REPLACE MACRO cheapest_published(jobs) AS TABLE
WITH _published_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_published_plans AS (
    SELECT * FROM published_plans('_published_jobs')
)

FROM ranked_jobs('_published_jobs', '_published_plans')
ORDER BY job, rank;
COMMENT ON MACRO TABLE cheapest_published IS
    'cheapest_for with published plans (published_plans): gives the same answers many times faster, but raises an error for a job without published plans.';

CREATE OR REPLACE MACRO workload_jobs() AS TABLE
WITH _workload_settings AS (
    SELECT
        workload AS job, model, method,
        CASE WHEN examples IS NULL THEN tokens / coalesce(epochs, 1) END AS tokens,
        examples, tokens_per_example, epochs, seq_len, lora_rank, max_gpus AS gpus, max_hours
    FROM main.workloads
)

SELECT j.* EXCLUDE (price_kinds) REPLACE (NULL::VARCHAR AS job_assumptions), w.scenario
FROM completed_jobs('_workload_settings') AS j
JOIN main.workloads AS w ON w.workload = j.job;
COMMENT ON MACRO TABLE workload_jobs IS
    'The catalogue''s workloads as jobs for priced_jobs, which also needs the column price_kinds. Workloads are completed like any other job, so that a workload gets the same answers as a user''s job with the same settings.';

CREATE OR REPLACE MACRO workload_plans() AS TABLE
SELECT w.workload AS job, p.*
FROM main.workloads AS w
JOIN main.plans AS p
    ON p.model = w.model AND p.method = w.method AND p.seq_len = w.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM w.lora_rank;
COMMENT ON MACRO TABLE workload_plans IS
    'The plans for each of the catalogue''s workloads; job is the name of the workload.';
