-- From priced candidates to ranked answers.

CREATE OR REPLACE MACRO longer_wait_way(longer_wait) AS
    CASE
        WHEN longer_wait IS NOT NULL THEN json_object_of(concat_ws(',',
            json_member('gpu_count', longer_wait.gpu_count), json_member('gpu', longer_wait.gpu),
            json_member('provider', longer_wait.provider), json_member('price_kind', longer_wait.price_kind)
        ))
    END;
COMMENT ON FUNCTION longer_wait_way IS 'The rental that longer_wait of ranked_candidates describes, as a JSON object in text form.';

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
        -- If no answer finishes in time, the fastest and those that take only a little longer are kept.
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

-- For each rental option, the cheapest offer and the offers that take less time: the rest are dearer and no
-- faster.
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

-- For the objective pareto: every answer that no other answer beats in both cost and hours.
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
    'The rankings of candidates, in three steps: candidates outside the job''s budget or deadline are dropped; the best offer of each combination of price kind, GPU, number of GPUs, source, tier and term is kept (for the objective pareto, every candidate that no other candidate beats in both cost and hours); and the kept candidates are ranked. longer_wait: the cheapest of the candidates that finish too late, if waiting for it saves money.';

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
    p.least_needed_gib,
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
    longer_wait_way(k.longer_wait) AS longer_wait_way,
    k.objective,
    b.total_usd_low, b.total_usd_high, b.hours_low, b.hours_high,
    c.total_usd / c.tokens * 1e6 AS usd_per_million_tokens,
    json_object_of(concat_ws(',',
        json_members(j.job_assumptions), json_members(p.assumptions), json_members(r.assumptions),
        assumed(coalesce(p.offload, '') <> '', 'host_ram_gib', r.ram_gib, round(r.host_ram_gib)::BIGINT),
        json_member(c.source, c.asked)
    )) AS assumptions,
    p.seq_len
FROM query_table(ranked) AS k
JOIN query_table(costs) AS c ON c.candidate = k.candidate AND c.speed = 'middle'
JOIN _bands AS b ON b.candidate = k.candidate
JOIN query_table(jobs) AS j ON j.job = k.job
JOIN query_table(plans) AS p
    ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
LEFT JOIN main.rentals AS r ON r.rowid = k.offer;
COMMENT ON MACRO TABLE answers_of IS
    'The ranked candidates with the columns of cheapest_for. costs: the costs of the candidates at all three speeds.';

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
-- Before the first publication, main.publication is empty.
LEFT JOIN main.publication AS p ON TRUE;
COMMENT ON MACRO TABLE ranked_jobs IS
    'The ranked answers to jobs, with the columns of cheapest_for. jobs: rows of completed_jobs, whose columns objectives (one ranking for each), ranks_each_kind (true if price kinds are ranked separately) and most_rows (the length of a ranking) shape the rankings. plans: rows of plans with their job. All constraints are applied before any answer is ranked or dropped (see job_candidates and ranked_candidates). If no answer finishes within max_hours, meets_deadline is false, and the ranking contains the fastest answer and the answers that take up to missed_deadline_factor (cost_parameters) times as long; if the deadline is strict, the ranking is empty.';

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
    'ranked_jobs for many jobs with short rankings; uses less memory, because only ranked candidates are priced at every speed.';
