-- From jobs to ranked answers: plans x the rentals that a job's constraints leave, priced and ranked.

CREATE OR REPLACE MACRO host_weights_gib(model_download_gib, quantization) AS
    model_download_gib * CASE coalesce(quantization, 'none') WHEN 'none' THEN 1 ELSE 0.25 END;
COMMENT ON FUNCTION host_weights_gib IS
    'Host memory in GiB that the weights of a model take while they are loaded or offloaded: a quarter of the 16-bit download where they are quantized on the way.';

CREATE OR REPLACE MACRO has_host_memory(
    ram_gib, host_ram_gib, node_count, offload, training_state_gib, model_download_gib, quantization
) AS
    -- Every machine loads the weights through its host memory; one that does not state it is not judged.
    coalesce(ram_gib / node_count >= host_weights_gib(model_download_gib, quantization), TRUE)
    -- It must also have room for what is offloaded: the training state and gradients as large as 16-bit
    -- weights, or adapters and the frozen weights.
    AND (
        coalesce(offload, '') = ''
        OR host_ram_gib >= training_state_gib + host_weights_gib(model_download_gib, quantization)
    );
COMMENT ON FUNCTION has_host_memory IS
    'Whether the machines of a rental have enough host memory for a plan; ram_gib: stated, of all of them; host_ram_gib: stated or assumed.';

CREATE OR REPLACE MACRO is_wanted(value, wanted, unwanted) AS
    (wanted IS NULL OR coalesce(list_contains(wanted, value), FALSE))
    AND NOT coalesce(list_contains(unwanted, value), FALSE);
COMMENT ON FUNCTION is_wanted IS
    'Whether a value is among the wanted ones (null: any) and not among the unwanted; an unknown value is none of them.';

CREATE OR REPLACE MACRO is_planned(
    verdict, fit_probability, evidence, gpu_id, gpu_count, node_count,
    min_fit_probability, evidences, gpu_ids, excluded_gpu_ids, min_gpus, max_gpus, max_nodes
) AS
    verdict <> 'does_not_fit' AND fit_probability >= min_fit_probability
    AND gpu_count BETWEEN coalesce(min_gpus, 1) AND max_gpus
    AND node_count <= coalesce(max_nodes, node_count)
    AND is_wanted(gpu_id, gpu_ids, excluded_gpu_ids)
    AND is_wanted(evidence, evidences, NULL);
COMMENT ON FUNCTION is_planned IS
    'Whether a plan is what a job asks for: likely enough to fit, on the GPUs and the numbers of them that it wants, with evidence enough.';

CREATE OR REPLACE MACRO is_rental_wanted(
    price_kind, provider, source, tier_class, country, continent, term_days, price_age_days, size_evidence,
    price_kinds, providers, excluded_providers, sources, excluded_sources, tier_classes, countries,
    continents, max_term_days, max_age_days, assumed_sizes
) AS
    list_contains(price_kinds, price_kind)
    AND is_wanted(provider, providers, excluded_providers)
    AND is_wanted(source, sources, excluded_sources)
    AND is_wanted(tier_class, tier_classes, NULL)
    AND is_wanted(country, countries, NULL)
    AND is_wanted(continent, continents, NULL)
    AND coalesce(term_days <= max_term_days, TRUE)
    AND coalesce(price_age_days <= max_age_days, TRUE)
    AND (size_evidence <> 'assumed' OR assumed_sizes);
COMMENT ON FUNCTION is_rental_wanted IS
    'Whether a rental is what a job asks for, whatever GPU it is.';

CREATE OR REPLACE MACRO gpu_name(model, form_factor, memory_gb) AS
    concat_ws(' ', model, form_factor, (memory_gb::INTEGER)::VARCHAR || ' GB');
COMMENT ON FUNCTION gpu_name IS 'A GPU''s usual name, with its form factor and memory.';

CREATE OR REPLACE MACRO way_text(gpu_count, gpu, provider, price_kind) AS
    gpu_count || ' x ' || gpu || CASE price_kind
        WHEN 'own' THEN ' of your own'
        WHEN 'quote' THEN ' as quoted'
        ELSE ' at ' || provider || ' (' || replace(price_kind, '_', '-') || ')'
    END;
COMMENT ON FUNCTION way_text IS 'A way to rent in words, such as 8 x H100 SXM 80 GB at Lambda (on-demand).';

CREATE OR REPLACE MACRO market_candidates(jobs, plans) AS TABLE
SELECT
    j.job, j.tokens, j.epochs,
    p.gpu_id, p.gpu_count, p.node_count, p.tokens_per_second, p.tokens_per_second_low,
    p.tokens_per_second_high, p.training_state_gib, p.result_gib, p.model_download_gib,
    gpu_name(g.model, g.form_factor, g.memory_gb) AS gpu,
    r.rowid AS offer, r.provider, r.source, r.tier, r.price_kind, r.term_days, r.gpus_billed,
    r.usd_per_hour, r.host_usd_per_hour, r.billing_increment_seconds, r.minimum_seconds, r.max_run_hours,
    r.storage_usd_per_gb_month, r.egress_usd_per_gb, r.download_usd_per_gb, r.local_disk_gb,
    r.setup_seconds, r.image_gb, r.download_gb_per_second, r.evaluation_share, r.dataset_bytes_per_token,
    r.checkpoints_kept, r.checkpoint_pause_seconds, r.checkpoint_gb_per_second,
    r.hours_between_failures, r.hours_between_interruptions, r.notice_seconds,
    r.interruption_wait_seconds, coalesce(r.capacity_wait_hours, 0) AS capacity_wait_hours,
    r.persistent_disk, r.disk_outlives_host, r.hours_per_month, NULL::VARCHAR AS asked
FROM query_table(jobs) AS j
JOIN query_table(plans) AS p USING (job)
JOIN main.rentals AS r
    ON r.gpu_id = p.gpu_id AND r.gpu_count = p.gpu_count AND r.node_count = p.node_count
    -- A plan over several machines applies where their network is at least as fast as the planned one.
    AND coalesce(r.node_network_gbps, 0) >= coalesce(p.node_network_gbps, 0)
JOIN main.gpus AS g ON g.gpu_id = p.gpu_id
WHERE is_planned(
        p.verdict, p.fit_probability, p.evidence, p.gpu_id, p.gpu_count, p.node_count,
        j.min_fit_probability, j.evidences, j.gpu_ids, j.excluded_gpu_ids, j.min_gpus, j.max_gpus, j.max_nodes
    )
    AND p.tokens_per_second > 0
    AND is_rental_wanted(
        r.price_kind, r.provider, r.source, r.tier_class, r.country, r.continent, r.term_days,
        r.price_age_days, r.size_evidence, j.price_kinds, j.providers, j.excluded_providers, j.sources,
        j.excluded_sources, j.tier_classes, j.countries, j.continents, j.max_term_days, j.max_age_days,
        j.assumed_sizes
    )
    AND (
        NOT r.is_undercut
        OR coalesce(j.providers, j.excluded_providers, j.countries, j.continents) IS NOT NULL
    )
    AND has_host_memory(
        r.ram_gib, r.host_ram_gib, p.node_count, p.offload, p.training_state_gib, p.model_download_gib,
        p.quantization
    );
COMMENT ON MACRO TABLE market_candidates IS
    'What is rented out and can run the jobs within their constraints: one row per job, plan and rental (offer, its row in rentals), with what its cost depends on. See completed_jobs for the columns of jobs; plans: rows of plans with their job. Left out are machines whose stated host memory is less than the weights that the job downloads, a quarter of them where they are quantized (offers_latest leaves out those with too little for any job, host_too_small).';

CREATE OR REPLACE MACRO asked_candidates(jobs, plans) AS TABLE
WITH _asking_jobs AS (
    SELECT *, unnest(machines) AS machine
    FROM query_table(jobs)
)

SELECT
    j.job, j.tokens, j.epochs,
    p.gpu_id, p.gpu_count, p.node_count, p.tokens_per_second, p.tokens_per_second_low,
    p.tokens_per_second_high, p.training_state_gib, p.result_gib, p.model_download_gib,
    gpu_name(g.model, g.form_factor, g.memory_gb) AS gpu,
    (-1)::BIGINT AS offer, j.machine.source AS provider, j.machine.source AS source,
    j.machine.source AS price_kind,
    CASE j.machine.source WHEN 'quote' THEN j.machine.gpus ELSE p.gpu_count END AS gpus_billed,
    (j.machine.usd * gpus_billed)::DECIMAL(18, 8) AS usd_per_hour, 0::DECIMAL(18, 8) AS host_usd_per_hour,
    CASE j.machine.source WHEN 'quote' THEN d.p['billing_increment_seconds'] ELSE 1 END::INTEGER
        AS billing_increment_seconds,
    CASE j.machine.source WHEN 'quote' THEN d.p['minimum_seconds'] ELSE 0 END::INTEGER AS minimum_seconds,
    -- One's own machine has a disk, its software and free traffic.
    CASE j.machine.source WHEN 'quote' THEN d.p['storage_usd_per_gb_month'] ELSE 0 END::DECIMAL(18, 8)
        AS storage_usd_per_gb_month,
    CASE j.machine.source WHEN 'quote' THEN d.p['egress_usd_per_gb'] ELSE 0 END::DECIMAL(18, 8)
        AS egress_usd_per_gb,
    CASE j.machine.source WHEN 'quote' THEN d.p['download_usd_per_gb'] ELSE 0 END::DECIMAL(18, 8)
        AS download_usd_per_gb,
    0e0 AS local_disk_gb,
    CASE j.machine.source WHEN 'quote' THEN d.p['setup_seconds'] ELSE 0 END AS setup_seconds,
    CASE j.machine.source WHEN 'quote' THEN d.p['image_gb'] ELSE 0 END AS image_gb,
    d.p['download_gbps'] / 8 AS download_gb_per_second, d.p['evaluation_share'] AS evaluation_share,
    d.p['dataset_bytes_per_token'] AS dataset_bytes_per_token, d.p['checkpoints_kept'] AS checkpoints_kept,
    d.p['checkpoint_pause_seconds'] AS checkpoint_pause_seconds,
    d.p['checkpoint_gbps'] / 8 AS checkpoint_gb_per_second,
    hours_between_machine_failures(
        p.gpu_count / p.node_count, d.p['gpu_hours_between_failures'], d.p['host_hours_between_failures']
    ) AS hours_between_failures,
    d.p['notice_seconds'] AS notice_seconds, d.p['interruption_wait_seconds'] AS interruption_wait_seconds,
    0e0 AS capacity_wait_hours, TRUE AS persistent_disk, TRUE AS disk_outlives_host,
    d.p['hours_per_month'] AS hours_per_month, j.machine.text AS asked
FROM _asking_jobs AS j
JOIN query_table(plans) AS p
    ON p.job = j.job AND p.gpu_id = j.machine.gpu_id AND p.gpu_count <= j.machine.gpus
    -- A quote is for all its GPUs: as many as can be used are.
    AND (j.machine.source = 'own' OR 2 * p.gpu_count > j.machine.gpus)
JOIN main.gpus AS g ON g.gpu_id = p.gpu_id
CROSS JOIN default_parameters() AS d
WHERE is_planned(
    p.verdict, p.fit_probability, p.evidence, p.gpu_id, p.gpu_count, p.node_count,
    j.min_fit_probability, j.evidences, j.gpu_ids, j.excluded_gpu_ids, j.min_gpus, j.max_gpus, j.max_nodes
)
AND p.tokens_per_second > 0;
COMMENT ON MACRO TABLE asked_candidates IS
    'market_candidates of the machines that the jobs name themselves: those with a quoted price (source quote) and their own (source own). Constraints on GPUs and their numbers apply, others do not. What a quote does not say is billed by the defaults of cost_parameters; a machine of one''s own costs its electricity.';

CREATE OR REPLACE MACRO job_candidates(jobs, plans) AS TABLE
SELECT *, row_number() OVER () AS candidate
FROM (
    FROM market_candidates(jobs, plans)
    UNION ALL BY NAME
    FROM asked_candidates(jobs, plans)
);
COMMENT ON MACRO TABLE job_candidates IS
    'Every candidate of the jobs, of the market or asked for, with a number.';

CREATE OR REPLACE MACRO candidate_costs(candidates, speeds) AS TABLE
WITH _each_speed AS (
    SELECT
        * EXCLUDE (tokens_per_second, tokens_per_second_low, tokens_per_second_high, speed),
        CASE speed
            WHEN 'low' THEN tokens_per_second_low
            WHEN 'high' THEN tokens_per_second_high
            ELSE tokens_per_second
        END AS tokens_per_second,
        speed
    FROM (SELECT *, unnest(speeds) AS speed FROM query_table(candidates))
)

FROM cost_terms('_each_speed');
COMMENT ON MACRO TABLE candidate_costs IS
    'What each candidate costs and takes at the middle, the low or the high end of its speed band: a row per candidate and speed, with the columns of cost_of.';

CREATE OR REPLACE MACRO eligible_costs(costs, jobs) AS TABLE
SELECT
    c.*, j.max_hours, j.deadline_is_strict, j.objectives, j.most_rows, j.ranks_each_kind,
    d.p['missed_deadline_factor'] AS missed_deadline_factor
FROM query_table(costs) AS c
JOIN query_table(jobs) AS j USING (job)
CROSS JOIN default_parameters() AS d
WHERE c.speed = 'middle'
    AND coalesce(c.total_usd <= j.max_usd, TRUE)
    -- A machine that stops before the job is done is no answer, nor is a term mostly paid for nothing.
    AND coalesce(c.hours - c.wait_hours <= c.max_run_hours, TRUE)
    AND coalesce(c.term_share_used >= d.p['least_term_share'], TRUE);
COMMENT ON MACRO TABLE eligible_costs IS
    'The candidates that are answers, at the middle of their speed: within the budget, done before the machine stops (max_run_hours), and using at least least_term_share of cost_parameters of the terms that they pay; with what of their jobs ranks them.';

CREATE OR REPLACE MACRO priced_jobs(jobs, plans) AS TABLE
WITH _priced_candidates AS (
    FROM job_candidates(jobs, plans)
),

_priced_costs AS (
    FROM candidate_costs('_priced_candidates', ['middle'])
)

SELECT c.*, r.region, r.country, r.continent
FROM eligible_costs('_priced_costs', jobs) AS c
JOIN main.rentals AS r ON r.rowid = c.offer
QUALIFY row_number() OVER (
    PARTITION BY c.job, c.price_kind, c.gpu_id, c.gpu_count, c.node_count, c.source, c.tier, c.term_days
    ORDER BY c.total_usd, c.hours, c.offer
) = 1;
COMMENT ON MACRO TABLE priced_jobs IS
    'Every way to rent that runs the jobs within their constraints, priced: one row per job, price kind, GPU, number of GPUs, source, tier and term, with the cheapest offer there. jobs and plans: as for market_candidates.';

CREATE OR REPLACE MACRO ranked_candidates(costs, jobs) AS TABLE
WITH _eligible AS (
    SELECT
        candidate, offer, job, gpu_id, gpu, gpu_count, node_count, provider, source, tier, price_kind,
        term_days, total_usd, hours, max_hours, deadline_is_strict, objectives, most_rows,
        missed_deadline_factor, CASE WHEN ranks_each_kind THEN price_kind END AS ranked_kind
    FROM eligible_costs(costs, jobs)
),

_rankings AS (
    SELECT
        job, ranked_kind,
        bool_or(hours <= max_hours) AS meets_deadline,
        -- What is kept where nothing is in time: the fastest, and what takes little longer.
        CASE
            WHEN meets_deadline OR any_value(deadline_is_strict) THEN any_value(max_hours)
            ELSE any_value(missed_deadline_factor) * min(hours)
        END AS most_hours
    FROM _eligible
    GROUP BY ALL
),

_deadlines AS (
    SELECT e.*, k.meets_deadline, k.most_hours
    FROM _eligible AS e
    JOIN _rankings AS k ON k.job = e.job AND k.ranked_kind IS NOT DISTINCT FROM e.ranked_kind
),

_waits AS (
    SELECT
        job, ranked_kind,
        min(total_usd) FILTER (hours <= most_hours) AS kept_usd,
        min(total_usd) FILTER (hours > most_hours) AS late_usd
    FROM _deadlines
    GROUP BY ALL
    HAVING late_usd < kept_usd
),

_late AS (
    SELECT
        d.job, d.ranked_kind,
        min({
            'usd': d.total_usd, 'hours': d.hours, 'gpu_count': d.gpu_count, 'gpu_id': d.gpu_id,
            'offer': d.offer, 'gpu': d.gpu, 'provider': d.provider, 'price_kind': d.price_kind
        }) AS longer_wait
    FROM _deadlines AS d
    JOIN _waits AS w
        ON w.job = d.job AND w.ranked_kind IS NOT DISTINCT FROM d.ranked_kind
        AND w.late_usd = d.total_usd
    WHERE d.hours > d.most_hours
    GROUP BY ALL
),

-- One offer, the cheapest, for each way to rent, and those that take less time: all others are beaten.
_ways AS (
    SELECT
        *,
        row_number() OVER _way = 1 AS is_cheapest
    FROM _deadlines
    WHERE hours <= most_hours
    WINDOW _way AS (
        PARTITION BY job, price_kind, gpu_id, gpu_count, node_count, source, tier, term_days
        ORDER BY total_usd, hours, offer
    )
    QUALIFY is_cheapest OR hours < first_value(hours) OVER _way
),

-- Of answers that none beats in cost and hours, all.
_best AS (
    SELECT
        w.candidate, w.offer, w.job, w.ranked_kind, w.gpu_count, w.total_usd, w.hours, w.max_hours,
        w.meets_deadline, w.objectives, w.most_rows, w.is_cheapest, l.longer_wait,
        coalesce(w.hours < min(w.hours) OVER (
            PARTITION BY w.job, w.ranked_kind
            ORDER BY w.total_usd, w.hours, w.gpu_count, w.offer
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), TRUE) AS is_unbeaten
    FROM _ways AS w
    LEFT JOIN _late AS l ON l.job = w.job AND l.ranked_kind IS NOT DISTINCT FROM w.ranked_kind
)

SELECT
    *,
    row_number() OVER (
        PARTITION BY job, ranked_kind, objective
        ORDER BY
            CASE objective WHEN 'time' THEN round(hours, 2) ELSE total_usd END,
            total_usd, hours, gpu_count, offer
    ) AS rank
FROM (SELECT *, unnest(objectives) AS objective FROM _best)
WHERE CASE objective WHEN 'pareto' THEN is_unbeaten ELSE is_cheapest END
QUALIFY rank <= coalesce(most_rows, rank);
COMMENT ON MACRO TABLE ranked_candidates IS
    'The rankings of candidates: the budget and the deadline of the job first, then the best offer of each price kind, GPU, number of GPUs, source, tier and term (for objective pareto, every candidate that no other beats in both cost and hours), then the rank. longer_wait: what the cheapest of those that finish too late would save.';

CREATE OR REPLACE MACRO answers_of(ranked, costs, jobs, plans) AS TABLE
WITH _bands AS (
    SELECT
        candidate,
        max(total_usd) FILTER (speed = 'high') AS total_usd_low,
        max(total_usd) FILTER (speed = 'low') AS total_usd_high,
        max(hours) FILTER (speed = 'high') AS hours_low,
        max(hours) FILTER (speed = 'low') AS hours_high
    FROM query_table(costs)
    GROUP BY candidate
)

SELECT
    k.job, k.rank, p.model, p.method, c.tokens, p.tokens_per_second, p.gpu_count, p.node_count,
    c.price_kind, c.term_days, c.usd_per_hour, c.host_usd_per_hour, p.gpu_id,
    c.gpu, c.gpus_billed, coalesce(r.size_evidence, 'offered') AS size_evidence, c.provider, c.source, c.tier,
    coalesce(r.tier_class, 'dedicated') AS tier_class, r.region, r.country, r.continent, r.instance_type,
    coalesce(r.raw_label, c.asked) AS raw_label, r.available,
    p.tokens_per_second_low, p.tokens_per_second_high, p.bottleneck,
    p.memory_gib, p.memory_gib_low, p.memory_gib_high, p.usable_memory_gib, p.memory_margin_gib,
    p.verdict, p.fit_probability, p.micro_batch, p.checkpointing, p.sharding, p.offload, p.quantization,
    p.stack,
    c.usd_per_hour / c.gpus_billed AS usd_per_gpu_hour, r.charged_while_stopped,
    coalesce(r.native_price, c.usd_per_hour / c.gpus_billed)::DECIMAL(18, 8) AS native_price,
    coalesce(r.native_currency, 'USD') AS native_currency, coalesce(r.native_unit, 'gpu_hour') AS native_unit,
    r.fx_rate, r.fx_date,
    coalesce(r.price_day, getvariable('today')::DATE, make_timestamp(epoch_us(now()))::DATE) AS price_day,
    coalesce(r.price_age_days, 0) AS price_age_days,
    coalesce(r.observed_at, now()) AS observed_at, coalesce(r.source_url, c.source) AS source_url,
    coalesce(r.capture_sha256, '') AS capture_sha256,
    p.evidence, p.evidence_run,
    c.setup_hours, c.train_hours, c.evaluation_hours, c.failure_hours, c.interruption_hours, c.failures,
    c.interruptions, c.checkpoint_interval_minutes, c.storage_gb, c.wait_hours, c.hours, c.billed_hours,
    c.compute_usd, c.interruption_usd, c.failure_usd, c.storage_usd, c.egress_usd, c.commitment_usd,
    c.term_share_used, c.kept_volume_usd_per_month, c.total_usd,
    k.max_hours, k.meets_deadline,
    k.longer_wait.usd AS longer_wait_usd, k.longer_wait.hours AS longer_wait_hours,
    way_text(
        k.longer_wait.gpu_count, k.longer_wait.gpu, k.longer_wait.provider, k.longer_wait.price_kind
    ) AS longer_wait_way,
    k.objective,
    b.total_usd_low, b.total_usd_high, b.hours_low, b.hours_high,
    c.total_usd / c.tokens * 1e6 AS usd_per_million_tokens,
    concat_ws('; ',
        nullif(j.job_assumptions, ''), nullif(p.assumptions, ''),
        nullif(array_to_string(r.assumptions, '; '), ''),
        CASE
            WHEN coalesce(p.offload, '') <> '' AND r.ram_gib IS NULL
                THEN 'host memory of ' || round(r.host_ram_gib)::BIGINT || ' GiB'
        END,
        CASE c.source
            WHEN 'quote' THEN 'quoted: ' || c.asked || '; other charges at their defaults'
            WHEN 'own' THEN 'own: ' || c.asked || '; nothing is paid but electricity'
        END
    ) AS assumptions,
    p.seq_len
FROM query_table(ranked) AS k
JOIN query_table(costs) AS c ON c.candidate = k.candidate AND c.speed = 'middle'
JOIN _bands AS b ON b.candidate = k.candidate
JOIN query_table(jobs) AS j ON j.job = k.job
JOIN query_table(plans) AS p
    ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
LEFT JOIN main.rentals AS r ON r.rowid = k.offer;
COMMENT ON MACRO TABLE answers_of IS
    'Ranked candidates in the columns of cheapest_for. costs: of all three speeds.';

CREATE OR REPLACE MACRO ranked_jobs(jobs, plans) AS TABLE
WITH _ranked_from AS MATERIALIZED (
    FROM job_candidates(jobs, plans)
),

_ranked_costs AS MATERIALIZED (
    FROM candidate_costs('_ranked_from', ['low', 'middle', 'high'])
),

_ranked AS MATERIALIZED (
    FROM ranked_candidates('_ranked_costs', jobs)
)

SELECT a.*, p.as_of_day AS day
FROM answers_of('_ranked', '_ranked_costs', jobs, plans) AS a
-- Before anything is published there is none.
LEFT JOIN main.publication AS p ON TRUE;
COMMENT ON MACRO TABLE ranked_jobs IS
    'The ranked answers to jobs, in the columns of cheapest_for. jobs: as completed_jobs gives them, or unconstrained with what is wanted; objectives: a ranking each; ranks_each_kind: price kinds are ranked apart; most_rows: the length of a ranking. plans: the rows of plans with their job. All constraints are applied before anything is ranked or left out (see market_candidates, ranked_candidates). Where none of a ranking finishes within max_hours, meets_deadline is false, and its rows are the fastest one and those that take up to missed_deadline_factor of cost_parameters times as long; no row where the deadline is strict.';

CREATE OR REPLACE MACRO ranked_workloads(jobs, plans) AS TABLE
WITH _many_candidates AS MATERIALIZED (
    FROM job_candidates(jobs, plans)
),

_many_costs AS MATERIALIZED (
    FROM candidate_costs('_many_candidates', ['middle'])
),

_many_ranked AS MATERIALIZED (
    FROM ranked_candidates('_many_costs', jobs)
),

_kept_candidates AS (
    FROM _many_candidates
    SEMI JOIN _many_ranked USING (candidate)
),

_kept_costs AS MATERIALIZED (
    FROM candidate_costs('_kept_candidates', ['low', 'middle', 'high'])
)

FROM answers_of('_many_ranked', '_kept_costs', jobs, plans);
COMMENT ON MACRO TABLE ranked_workloads IS
    'ranked_jobs for many jobs with short rankings, in less memory: only what is ranked is priced at all speeds.';

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

CREATE OR REPLACE MACRO with_rented_gpus(jobs) AS TABLE
SELECT
    *,
    list_concat(
        (SELECT list(DISTINCT r.gpu_id) FROM main.rentals AS r),
        list_transform(machines, lambda machine: machine.gpu_id)
    ) AS planned_gpus
FROM query_table(jobs);
COMMENT ON MACRO TABLE with_rented_gpus IS
    'Jobs with planned_gpus for job_plans: the GPUs that an answer can have, since they are rented out or the job names machines with them. jobs: as completed_jobs gives them.';

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
    'The ranked ways to run your own jobs, in USD per finished job, at the published prices. One row per price kind, GPU, number of GPUs, source, tier and term, the best offer there: what you want of GPUs, providers, places and so on belongs into the columns of jobs, since offers that a WHERE on the answer asks for may not be in it. A ranking keeps to max_hours, or to a week where any answer does (where none does, meets_deadline is false and it keeps to little more than the fastest takes), and says in longer_wait_usd what waiting longer would save. jobs: the name of a table or CTE; see completed_jobs for its columns. By time, hours count to the hundredth. Ties go to the lower cost, then fewer hours, then fewer GPUs, then gpu_id, source, tier, region, instance type and label in alphabetical order. The columns are those of cheapest_gpu_per_workload.';

CREATE OR REPLACE MACRO published_plans(jobs) AS TABLE
SELECT
    CASE
        WHEN p.gpu_id IS NULL THEN error(
            'Job ' || j.job || ': no plans are published for ' || concat_ws(
                ', ', j.model || ' ' || j.method, 'sequences of ' || j.seq_len, 'lora_rank ' || j.lora_rank,
                CASE WHEN NOT j.is_default THEN 'these settings' END
            ) || '; cheapest_for plans any job'
        )
        ELSE j.job
    END AS job,
    p.*
FROM (
    SELECT
        j.*,
        coalesce(
            j.lora_targets, j.micro_batch::VARCHAR, j.global_batch_tokens::VARCHAR, j.checkpointing,
            j.offload, j.stack, j.optimizer, j.training_precision, j.quantization
        ) IS NULL AND j.min_fit_probability = d.min_fit_probability AS is_default
    FROM query_table(jobs) AS j
    CROSS JOIN plan_defaults() AS d
) AS j
LEFT JOIN grid_plans() AS p
    ON p.model = j.model AND p.method = j.method AND p.seq_len = j.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM j.lora_rank AND j.is_default;
COMMENT ON MACRO TABLE published_plans IS
    'The plans of jobs as the file has them ready (grid_plans): what job_plans gives, without planning and without the terms of memory and time. Raises an error that names the job where there are none: they are published for the models, methods, sequence lengths and ranks of the grid, all other settings left open. jobs: as completed_jobs gives them.';

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
    'cheapest_for on plans that are published (published_plans): the same answers many times faster, and an error for a job that has none.';

CREATE OR REPLACE MACRO unconstrained() AS TABLE
SELECT
    NULL::INTEGER AS min_gpus, NULL::INTEGER AS max_nodes,
    NULL::VARCHAR[] AS gpu_ids, NULL::VARCHAR[] AS excluded_gpu_ids,
    NULL::VARCHAR[] AS providers, NULL::VARCHAR[] AS excluded_providers,
    NULL::VARCHAR[] AS sources, NULL::VARCHAR[] AS excluded_sources,
    NULL::VARCHAR[] AS tier_classes, NULL::VARCHAR[] AS countries, NULL::VARCHAR[] AS continents,
    NULL::INTEGER AS max_term_days, NULL::DOUBLE AS max_usd, NULL::INTEGER AS max_age_days,
    NULL::VARCHAR[] AS evidences,
    NULL::STRUCT(source VARCHAR, "text" VARCHAR, gpus INTEGER, gpu_id VARCHAR, usd DECIMAL(18, 8))[]
        AS machines,
    ['cost'] AS objectives, FALSE AS ranks_each_kind, NULL::INTEGER AS most_rows,
    NULL::VARCHAR AS job_assumptions;
COMMENT ON MACRO TABLE unconstrained IS
    'The constraints of completed_jobs, all open, for jobs that have none; ranked by cost.';

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
