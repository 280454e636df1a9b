-- From jobs to ranked answers: plans x rentals, priced, with the best of each kind.

CREATE OR REPLACE MACRO host_weights_gib(model_download_gib, quantization) AS
    model_download_gib * CASE coalesce(quantization, 'none') WHEN 'none' THEN 1 ELSE 0.25 END;
COMMENT ON FUNCTION host_weights_gib IS
    'Host memory in GiB that the weights of a model take while they are loaded or offloaded: a quarter of the 16-bit download where they are quantized on the way.';

CREATE OR REPLACE MACRO is_wanted(value, wanted, unwanted) AS
    (wanted IS NULL OR coalesce(list_contains(wanted, value), FALSE))
    AND NOT coalesce(list_contains(unwanted, value), FALSE);
COMMENT ON FUNCTION is_wanted IS
    'Whether a value is among the wanted ones (null: any) and not among the unwanted; an unknown value is none of them.';

CREATE OR REPLACE MACRO priced_jobs(jobs, plans) AS TABLE
WITH _priced_cases AS (
    SELECT
        j.job, j.tokens, j.epochs,
        p.gpu_id,
        concat_ws(' ', g.model, g.form_factor, (g.memory_gb::INTEGER)::VARCHAR || ' GB') AS gpu,
        p.gpu_count, p.node_count, p.seq_len,
        r.gpus_billed, r.size_evidence, r.provider, r.source, r.tier, r.tier_class, r.region, r.country,
        r.continent, r.instance_type, r.raw_label, r.price_kind, r.term_days, r.available,
        p.tokens_per_second, p.tokens_per_second_low, p.tokens_per_second_high, p.bottleneck,
        p.memory_gib, p.memory_gib_low, p.memory_gib_high, p.usable_memory_gib, p.memory_margin_gib,
        p.verdict, p.fit_probability,
        p.micro_batch, p.checkpointing, p.sharding, p.offload, p.quantization, p.stack,
        p.training_state_gib, p.result_gib, p.model_download_gib,
        r.usd_per_hour, r.host_usd_per_hour, (r.usd_per_hour / r.gpus_billed) AS usd_per_gpu_hour,
        r.billing_increment_seconds, r.minimum_seconds, r.max_run_hours,
        r.storage_usd_per_gb_month, r.egress_usd_per_gb, r.download_usd_per_gb, r.local_disk_gb,
        r.setup_seconds, r.image_gb, r.download_gb_per_second, r.evaluation_share, r.dataset_bytes_per_token,
        r.checkpoints_kept, r.checkpoint_pause_seconds, r.checkpoint_gb_per_second,
        r.hours_between_failures, r.hours_between_interruptions, r.notice_seconds,
        r.interruption_wait_seconds, r.capacity_wait_hours, r.persistent_disk, r.disk_outlives_host,
        r.hours_per_month,
        r.charged_while_stopped,
        r.native_price, r.native_currency, r.native_unit, r.fx_rate, r.fx_date,
        r.price_day, r.price_age_days, r.observed_at, r.source_url, r.capture_sha256,
        p.evidence, p.evidence_run, p.assumptions AS plan_assumptions,
        list_concat(r.assumptions, CASE
            WHEN coalesce(p.offload, '') <> '' AND r.ram_gib IS NULL
                THEN ['host memory of ' || round(r.host_ram_gib)::BIGINT || ' GiB']
            ELSE []
        END) AS price_assumptions
    FROM query_table(jobs) AS j
    JOIN query_table(plans) AS p USING (job)
    JOIN main.rentals AS r
        ON r.gpu_id = p.gpu_id AND r.gpu_count = p.gpu_count AND r.node_count = p.node_count
        -- A plan over several machines applies where their network is at least as fast as the planned one.
        AND coalesce(r.node_network_gbps, 0) >= coalesce(p.node_network_gbps, 0)
        AND (r.size_evidence <> 'assumed' OR j.assumed_sizes)
    JOIN main.gpus AS g ON g.gpu_id = p.gpu_id
    WHERE p.verdict <> 'does_not_fit' AND p.fit_probability >= j.min_fit_probability
        AND p.tokens_per_second > 0
        AND p.gpu_count BETWEEN coalesce(j.min_gpus, 1) AND j.max_gpus
        AND p.node_count <= coalesce(j.max_nodes, p.node_count)
        AND is_wanted(p.gpu_id, j.gpu_ids, j.excluded_gpu_ids)
        AND is_wanted(p.evidence, j.evidences, NULL)
        AND list_contains(j.price_kinds, r.price_kind)
        AND is_wanted(r.provider, j.providers, j.excluded_providers)
        AND is_wanted(r.source, j.sources, j.excluded_sources)
        AND is_wanted(r.tier_class, j.tier_classes, NULL)
        AND is_wanted(r.country, j.countries, NULL)
        AND is_wanted(r.continent, j.continents, NULL)
        AND coalesce(r.term_days <= j.max_term_days, TRUE)
        AND coalesce(r.price_age_days <= j.max_age_days, TRUE)
        -- Every machine loads the weights through its host memory; one that does not state it is not judged.
        AND coalesce(r.ram_gib / p.node_count >= host_weights_gib(p.model_download_gib, p.quantization), TRUE)
        -- It must also have room for what is offloaded: the training state, or the frozen weights.
        AND (coalesce(p.offload, '') = '' OR r.host_ram_gib >= greatest(
            p.training_state_gib, host_weights_gib(p.model_download_gib, p.quantization)
        ))
)

SELECT c.*
FROM cost_of('_priced_cases') AS c
JOIN query_table(jobs) AS j USING (job)
-- A machine that stops before the job is done is no answer, nor is a term of which most is paid for nothing.
WHERE c.hours - c.wait_hours <= coalesce(c.max_run_hours, 'infinity'::DOUBLE)
    AND coalesce(c.total_usd <= j.max_usd, TRUE)
    AND coalesce(
        term_share_used >= (
            SELECT value FROM main.cost_parameters WHERE name = 'least_term_share' AND applies_to = 'default'
        ),
        TRUE
    )
QUALIFY row_number() OVER (
    PARTITION BY
        c.job, c.price_kind, c.gpu_id, c.gpu_count, c.node_count, c.source, c.tier, c.term_days
    ORDER BY c.total_usd, c.hours, c.region NULLS LAST, c.instance_type NULLS LAST, c.raw_label, provider,
        source_url, capture_sha256, observed_at, usd_per_hour, gpus_billed
) = 1;
COMMENT ON MACRO TABLE priced_jobs IS
    'Every way to run the jobs that fits with the probability wanted, priced by cost_of: one row per job, price kind, GPU, number of GPUs, source, tier and term, with the cheapest offer there. Left out are machines that stop before the job is done (max_run_hours), and reservations of whose terms the job uses less than least_term_share of cost_parameters, and machines whose stated host memory is less than the weights that the job downloads, a quarter of them where they are quantized (offers_latest leaves out those with too little for any job, host_too_small). jobs: job, tokens, epochs, max_gpus, price_kinds (list), min_fit_probability, assumed_sizes (whether machines count of which nothing says that they are sold). plans: the rows of plans with their job.';

CREATE OR REPLACE MACRO within_deadline(priced, jobs) AS TABLE
WITH _deadline_rows AS (
    SELECT
        p.*, j.max_hours, j.deadline_is_strict,
        bool_or(p.hours <= j.max_hours) OVER _ranking AS meets_deadline,
        -- What is kept where nothing is in time: the fastest, and what takes little longer.
        CASE
            WHEN meets_deadline OR j.deadline_is_strict THEN j.max_hours
            ELSE f.value * min(p.hours) OVER _ranking
        END AS _most_hours
    FROM query_table(priced) AS p
    JOIN query_table(jobs) AS j USING (job)
    JOIN main.cost_parameters AS f ON f.name = 'missed_deadline_factor' AND f.applies_to = 'default'
    WINDOW _ranking AS (PARTITION BY p.ranking)
),

_deadline_compared AS (
    SELECT
        *,
        min(total_usd) FILTER (hours <= _most_hours) OVER _ranking AS _kept_usd,
        min({
            'usd': total_usd, 'hours': hours, 'gpu_count': gpu_count, 'gpu_id': gpu_id,
            'way': gpu_count || ' x ' || gpu || ' at ' || provider || ' ('
                || replace(price_kind, '_', '-') || ')'
        }) FILTER (hours > _most_hours) OVER _ranking AS _late
    FROM _deadline_rows
    WINDOW _ranking AS (PARTITION BY ranking)
),

_deadline_savings AS (
    SELECT *, CASE WHEN _late.usd < _kept_usd THEN _late END AS _cheaper
    FROM _deadline_compared
)

SELECT
    * EXCLUDE (ranking, deadline_is_strict, _most_hours, _kept_usd, _late, _cheaper),
    _cheaper.usd AS longer_wait_usd, _cheaper.hours AS longer_wait_hours, _cheaper.way AS longer_wait_way
FROM _deadline_savings
WHERE hours <= _most_hours;
COMMENT ON MACRO TABLE within_deadline IS
    'The rows of priced_jobs that finish within max_hours, and what the cheapest of the others would save. Where none of a ranking does, meets_deadline is false, and its rows are the fastest one and those that take up to missed_deadline_factor of cost_parameters times as long; no row where the deadline is strict. priced: rows of priced_jobs with their ranking. jobs: job, max_hours, deadline_is_strict.';

CREATE OR REPLACE MACRO with_cost_bands(ranked) AS TABLE
WITH _band_rows AS (
    SELECT *, row_number() OVER () AS _row
    FROM query_table(ranked)
),

_band_cases AS (
    SELECT
        b._row, s.side,
        CASE s.side WHEN 'fast' THEN b.tokens_per_second_high ELSE b.tokens_per_second_low END
            AS tokens_per_second,
        b.tokens, b.epochs, b.node_count, b.price_kind, b.term_days,
        b.training_state_gib, b.result_gib, b.model_download_gib,
        b.usd_per_hour, b.host_usd_per_hour, b.billing_increment_seconds, b.minimum_seconds,
        b.storage_usd_per_gb_month, b.egress_usd_per_gb, b.download_usd_per_gb, b.local_disk_gb,
        b.setup_seconds, b.image_gb, b.download_gb_per_second, b.evaluation_share, b.dataset_bytes_per_token,
        b.checkpoints_kept, b.checkpoint_pause_seconds, b.checkpoint_gb_per_second,
        b.hours_between_failures, b.hours_between_interruptions, b.notice_seconds,
        b.interruption_wait_seconds, b.capacity_wait_hours, b.persistent_disk, b.disk_outlives_host,
        b.hours_per_month
    FROM _band_rows AS b
    CROSS JOIN (SELECT unnest(['fast', 'slow']) AS side) AS s
),

_bands AS (
    SELECT
        _row,
        max(total_usd) FILTER (side = 'fast') AS total_usd_low,
        max(total_usd) FILTER (side = 'slow') AS total_usd_high,
        max(hours) FILTER (side = 'fast') AS hours_low,
        max(hours) FILTER (side = 'slow') AS hours_high
    FROM cost_of('_band_cases')
    GROUP BY _row
)

SELECT
    b.* EXCLUDE (
        _row, epochs, training_state_gib, result_gib, model_download_gib,
        billing_increment_seconds, minimum_seconds, max_run_hours, storage_usd_per_gb_month,
        egress_usd_per_gb, download_usd_per_gb,
        local_disk_gb, setup_seconds, image_gb, download_gb_per_second, evaluation_share,
        dataset_bytes_per_token,
        checkpoints_kept, checkpoint_pause_seconds, checkpoint_gb_per_second, hours_between_failures,
        hours_between_interruptions, notice_seconds, interruption_wait_seconds, capacity_wait_hours,
        persistent_disk, disk_outlives_host, hours_per_month, checkpoint_seconds, failure_restart_seconds,
        reclaim_restart_seconds, plan_assumptions, price_assumptions
    ),
    n.total_usd_low, n.total_usd_high, n.hours_low, n.hours_high,
    b.total_usd / b.tokens * 1e6 AS usd_per_million_tokens,
    concat_ws('; ', nullif(b.plan_assumptions, ''), nullif(array_to_string(b.price_assumptions, '; '), ''))
        AS assumptions
FROM _band_rows AS b
JOIN _bands AS n USING (_row);
COMMENT ON MACRO TABLE with_cost_bands IS
    'Adds to rows of priced_jobs what they cost and take at both ends of their speed band, the cost per million tokens, and the assumptions in one text.';

CREATE OR REPLACE MACRO job_plans(jobs) AS TABLE
WITH _job_settings AS (
    SELECT COLUMNS(lambda name: list_contains(plan_columns(), name))
    FROM query_table(jobs)
)

SELECT
    p.* REPLACE (
        j.method AS method,
        j.lora_rank AS lora_rank,
        -- Nothing is downloaded to train from scratch.
        CASE WHEN j.method = 'pretrain' THEN 0e0 ELSE p.model_download_gib END AS model_download_gib
    )
FROM plans_for('_job_settings') AS p
JOIN _job_settings AS j USING (job);
COMMENT ON MACRO TABLE job_plans IS
    'The rows of plans_for with the method and rank as the job names them. jobs needs the columns job, method and lora_rank; columns that the planner does not read are left alone.';

CREATE OR REPLACE MACRO cheapest_for(jobs) AS TABLE
WITH _cheapest_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_cheapest_plans AS (
    SELECT * FROM job_plans('_cheapest_jobs')
),

_cheapest_priced AS (
    SELECT * FROM priced_jobs('_cheapest_jobs', '_cheapest_plans')
),

_cheapest_rankings AS (
    SELECT *, job AS ranking
    FROM _cheapest_priced
),

_cheapest_in_time AS (
    SELECT * FROM within_deadline('_cheapest_rankings', '_cheapest_jobs')
),

_cheapest_ranked AS (
    SELECT
        c.* REPLACE (
            concat_ws('; ', nullif(j.job_assumptions, ''), nullif(c.plan_assumptions, '')) AS plan_assumptions
        ),
        j.model, j.method, j.objective,
        row_number() OVER (
            PARTITION BY c.job
            ORDER BY
                CASE j.objective WHEN 'cost' THEN c.total_usd ELSE round(c.hours, 2) END,
                c.total_usd, c.hours,
                c.gpu_count,
                c.gpu_id, c.source, c.tier NULLS LAST, c.region NULLS LAST, c.instance_type NULLS LAST,
                c.raw_label,
                c.price_kind, c.term_days NULLS LAST
        ) AS rank
    FROM _cheapest_in_time AS c
    JOIN _cheapest_jobs AS j USING (job)
)

SELECT job, rank, model, method, b.* EXCLUDE (job, rank, model, method, seq_len), b.seq_len,
p.as_of_day AS day
FROM with_cost_bands('_cheapest_ranked') AS b
CROSS JOIN main.publication AS p
ORDER BY job, rank;
COMMENT ON MACRO TABLE cheapest_for IS
    'The ranked ways to run your own jobs, in USD per finished job, at the published prices. A ranking keeps to max_hours, or to a week where any answer does (where none does, meets_deadline is false and it keeps to little more than the fastest takes), and says in longer_wait_usd what waiting longer would save. jobs: the name of a table or CTE; see completed_jobs for its columns. By time, hours count to the hundredth. Ties go to the lower cost, then fewer hours, then fewer GPUs, then gpu_id, source, tier, region, instance type and label in alphabetical order. The columns are those of cheapest_gpu_per_workload.';

CREATE OR REPLACE MACRO unconstrained() AS TABLE
SELECT
    NULL::INTEGER AS min_gpus, NULL::INTEGER AS max_nodes,
    NULL::VARCHAR[] AS gpu_ids, NULL::VARCHAR[] AS excluded_gpu_ids,
    NULL::VARCHAR[] AS providers, NULL::VARCHAR[] AS excluded_providers,
    NULL::VARCHAR[] AS sources, NULL::VARCHAR[] AS excluded_sources,
    NULL::VARCHAR[] AS tier_classes, NULL::VARCHAR[] AS countries, NULL::VARCHAR[] AS continents,
    NULL::INTEGER AS max_term_days, NULL::DOUBLE AS max_usd, NULL::INTEGER AS max_age_days,
    NULL::VARCHAR[] AS evidences;
COMMENT ON MACRO TABLE unconstrained IS
    'The constraints of completed_jobs, all open: for jobs that have none.';

CREATE OR REPLACE MACRO workload_jobs() AS TABLE
SELECT
    w.workload AS job, w.tokens, coalesce(w.epochs, 1) AS epochs, w.max_gpus, w.max_hours,
    FALSE AS deadline_is_strict, d.min_fit_probability, FALSE AS assumed_sizes, w.scenario, n.*
FROM main.workloads AS w
CROSS JOIN plan_defaults() AS d
CROSS JOIN unconstrained() AS n;
COMMENT ON MACRO TABLE workload_jobs IS
    'The catalogue''s workloads as jobs for priced_jobs, which also needs price_kinds.';

CREATE OR REPLACE MACRO workload_plans() AS TABLE
SELECT w.workload AS job, p.*
FROM main.workloads AS w
JOIN main.plans AS p
    ON p.model = w.model AND p.method = w.method AND p.seq_len = w.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM w.lora_rank;
COMMENT ON MACRO TABLE workload_plans IS
    'The plans of each of the catalogue''s workloads, by job.';
