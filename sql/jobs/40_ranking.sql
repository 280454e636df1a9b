-- From priced candidates to ranked answers.

CREATE OR REPLACE MACRO way_as_json(way) AS
    CASE
        WHEN way IS NOT NULL THEN json_object_of(concat_ws(',',
            json_member('gpu_count', way.gpu_count), json_member('gpu', way.gpu),
            json_member('provider', way.provider), json_member('price_kind', way.price_kind)
        ))
    END;
COMMENT ON FUNCTION way_as_json IS 'The rental that longer_wait of ranked_candidates describes, as a JSON object in text form.';

CREATE OR REPLACE MACRO ranked_candidates(costs, jobs) AS TABLE
WITH _eligible AS (
    SELECT
        e.candidate, e.offer, e.job, e.gpu_id, e.gpu, e.gpu_count, e.node_count, e.provider, e.source, e.tier,
        e.price_kind, e.term_days, e.total_usd, e.hours, e.max_hours, e.deadline_is_strict,
        e.objectives, e.most_rows, e.hour_worth, e.is_asked_kind,
        e.usd_per_hour + e.host_usd_per_hour AS hourly_usd,
        CASE WHEN e.ranks_each_kind THEN e.price_kind END AS ranked_kind,
        s.hours <= e.max_hours AND coalesce(s.hours - s.wait_hours <= s.max_run_hours, TRUE)
            AS keeps_deadline,
        NOT keeps_deadline AND d.p['deadline_at_slow_end'] = 1 AS is_late_when_slow,
        e.price_kind = 'reserved' AND s.billed_hours > e.billed_hours AS has_short_term,
        -- Another platform and too little memory may stop a job altogether: they count twice.
        e.is_extrapolated::INTEGER + (e.node_count > 1)::INTEGER + (e.tier_class = 'resold')::INTEGER
        + e.has_slow_links::INTEGER + 2 * e.is_other_platform::INTEGER
        + 2 * (e.fit_probability < d.p['safest_fit_probability'])::INTEGER
        + e.is_private_host::INTEGER * e.hours / d.p['private_host_hours']
        + e.interruptions / d.p['safest_most_interruptions'] AS doubts,
        e.is_stock_open, e.is_other_platform, e.interruptions,
        -- Rented from a company, in no country with a notice, and sure to fit, to be there and to be in time.
        e.offer >= 0 AND e.tier_class IN ('dedicated', 'serverless') AND e.renter_notice IS NULL AND e.is_sure
        AND e.fit_probability >= d.p['safest_fit_probability'] AND NOT e.is_other_platform
        AND e.interruptions <= d.p['safest_most_interruptions'] AND keeps_deadline AS is_safe
    FROM eligible_costs(costs, jobs) AS e
    JOIN query_table(costs) AS s ON s.candidate = e.candidate AND s.speed = 'low'
    CROSS JOIN default_parameters() AS d
),

_rankings AS (
    SELECT
        job, ranked_kind,
        bool_or(hours <= max_hours) AS meets_deadline,
        -- If no answer finishes in time, the fastest and those that take only a little longer are kept.
        CASE
            WHEN meets_deadline OR any_value(deadline_is_strict) THEN any_value(max_hours)
            ELSE any_value(d.p['missed_deadline_factor']) * min(hours)
        END AS most_hours
    FROM _eligible
    CROSS JOIN default_parameters() AS d
    WHERE is_asked_kind
    GROUP BY ALL
),

_on_demand AS (
    SELECT job, hours, min(total_usd) OVER (PARTITION BY job ORDER BY hours) AS on_demand_usd
    FROM _eligible
    WHERE price_kind = 'on_demand' AND is_safe
),

_instead AS (
    SELECT e.candidate, o.on_demand_usd
    FROM _eligible AS e
    ASOF JOIN _on_demand AS o ON o.job = e.job AND o.hours <= e.hours
    WHERE list_contains(saving_kinds(), e.price_kind)
),

_deadlines AS NOT MATERIALIZED (
    SELECT e.*, k.meets_deadline, k.most_hours
    FROM _eligible AS e
    JOIN _rankings AS k ON k.job = e.job AND k.ranked_kind IS NOT DISTINCT FROM e.ranked_kind
    WHERE e.is_asked_kind
),

_late AS (
    SELECT
        job, ranked_kind,
        min({
            'usd': total_usd, 'hours': hours, 'gpu_count': gpu_count, 'gpu_id': gpu_id, 'offer': offer,
            'gpu': gpu, 'provider': provider, 'price_kind': price_kind
        }) FILTER (hours > most_hours AND hours <= most_hours * d.p['longest_wait_factor'])
            AS longer_wait
    FROM _deadlines
    CROSS JOIN default_parameters() AS d
    GROUP BY ALL
    HAVING longer_wait['usd']
        < min(total_usd * (1 - d.p['equal_cost_share'])) FILTER (hours <= most_hours)
),

_worths AS (
    SELECT
        job, ranked_kind,
        min({'late': is_late_when_slow, 'usd': total_usd, 'hours': hours, 'doubts': doubts}) AS least,
        coalesce(any_value(hour_worth), greatest(
            any_value(d.p['hour_worth_usd']),
            any_value(d.p['hour_worth_share']) * least['usd'] / least['hours']
        )) AS worth
    FROM _deadlines
    CROSS JOIN default_parameters() AS d
    WHERE hours <= most_hours
    GROUP BY ALL
),

_valued AS (
    SELECT
        e.*,
        -- A doubt fewer is worth its share of the cost.
        e.total_usd <= w.least['usd'] * (
            1 + d.p['equal_cost_share']
            + d.p['best_value_doubt_share'] * least(1, w.least['doubts'] - e.doubts)
        ) AND e.doubts <= w.least['doubts'] AS is_as_cheap,
        e.total_usd + e.hours * w.worth AS value_usd,
        value_usd * (1 + e.doubts * d.p['best_value_doubt_share']) AS doubted_value_usd,
        e.is_other_platform::INTEGER * d.p['other_platform_hours'] * (e.hourly_usd + w.worth)
            AS porting_usd,
        value_usd * (1 + e.is_stock_open::INTEGER * d.p['unstated_stock_share'])
        + (e.doubts + e.interruptions)
        * greatest(value_usd * d.p['safest_doubt_share'], d.p['hour_worth_usd'])
            AS safety_value_usd,
        i.on_demand_usd,
        coalesce(e.total_usd <= i.on_demand_usd, TRUE) AS is_worth_it
    FROM _deadlines AS e
    JOIN _worths AS w ON w.job = e.job AND w.ranked_kind IS NOT DISTINCT FROM e.ranked_kind
    LEFT JOIN _instead AS i USING (candidate)
    CROSS JOIN default_parameters() AS d
    WHERE e.hours <= e.most_hours
),

-- Of safe answers, those come first that nobody can take away and that start when asked.
_safest AS (
    SELECT
        job, ranked_kind,
        arg_min(candidate, {
            'unsure': price_kind IN ('spot', 'flex_start'),
            'value_usd': safety_value_usd,
            'usd': total_usd, 'hours': hours, 'gpu_count': gpu_count, 'offer': offer
        }) AS safest
    FROM _valued
    WHERE is_safe AND is_worth_it
    GROUP BY ALL
),

-- For each rental option, the best offer; the safest answer may be another offer of the same option.
_ways AS (
    SELECT v.*, v.candidate IS NOT DISTINCT FROM s.safest AS is_safest
    FROM _valued AS v
    LEFT JOIN _safest AS s ON s.job = v.job AND s.ranked_kind IS NOT DISTINCT FROM v.ranked_kind
    QUALIFY is_safest OR row_number() OVER (
        PARTITION BY
            v.job, v.price_kind, v.gpu_id, v.gpu_count, v.node_count, v.source, v.tier, v.term_days
        ORDER BY v.is_late_when_slow, v.total_usd, v.hours, v.offer
    ) = 1
),

_picks AS (
    SELECT
        * EXCLUDE (cost_place, value_place),
        max(total_usd) FILTER (is_safest) OVER (PARTITION BY job, ranked_kind) AS safest_usd,
        nullif(list_filter([
            CASE WHEN cost_place = 1 THEN 'cheapest' END,
            CASE WHEN value_place = 1 AND is_worth_it THEN 'best_value' END,
            CASE WHEN is_safest THEN 'safest' END
        ], lambda name: name IS NOT NULL), []) AS pick
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY job, ranked_kind
                ORDER BY
                    is_late_when_slow, NOT is_as_cheap, doubted_value_usd, total_usd, hours, gpu_count, offer
            ) AS cost_place,
            row_number() OVER (
                PARTITION BY job, ranked_kind
                ORDER BY
                    NOT is_worth_it, is_late_when_slow, doubted_value_usd + porting_usd, total_usd, hours,
                    gpu_count, offer
            ) AS value_place
        FROM _ways
    )
),

_ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY job, ranked_kind, objective
            ORDER BY
                is_late_when_slow, CASE objective WHEN 'time' THEN round(hours, 2) ELSE total_usd END,
                total_usd, hours, gpu_count, offer
        ) AS rank
    FROM (SELECT *, unnest(objectives) AS objective FROM _picks)
)

SELECT
    r.candidate, r.offer, r.job, r.ranked_kind, r.gpu_count, r.total_usd, r.hours, r.max_hours,
    r.meets_deadline, r.keeps_deadline, r.pick, r.objective, r.rank, l.longer_wait,
    r.on_demand_usd, r.safest_usd, r.has_short_term
FROM _ranked AS r
LEFT JOIN _late AS l ON l.job = r.job AND l.ranked_kind IS NOT DISTINCT FROM r.ranked_kind
-- The first answer and the picks are among the rows that a short ranking keeps.
QUALIFY r.most_rows IS NULL OR row_number() OVER (
    PARTITION BY r.job, r.ranked_kind, r.objective ORDER BY r.rank > 1, r.pick IS NULL, r.rank
) <= r.most_rows;
COMMENT ON MACRO TABLE ranked_candidates IS
    'The rankings of candidates, in four steps. Candidates that are no answers (judged_costs) or that miss the job''s deadline are dropped. The best offer of each combination of price kind, GPU, number of GPUs, source, tier and term is kept, and the safest answer. Of these, three are picked. best_value: the lowest total_usd + hours x the worth of an hour (see hour_worth_share in cost_parameters), where an answer on another platform than NVIDIA with bf16 on an x86 host counts as if its machine were rented for other_platform_hours more. cheapest: the same, without these hours, of those that cost at most equal_cost_share more than the first by cost, and with a doubt fewer also best_value_doubt_share more, and leave no more doubts. safest: the same, of those on a company''s own machine, in stock if the source states its stock, in no country with a renter_notice as far as the country is stated, with a P(fits) of at least safest_fit_probability, at most safest_most_interruptions expected, on an NVIDIA card with bf16 and an x86 host, and in time at the slow end of the speed band; spot and flex-start only if there is no other. Doubts make an answer count as dearer, each by best_value_doubt_share of its value or, for the safest, by safest_doubt_share and at least hour_worth_usd: extrapolated evidence, several machines, a reseller, more cards of a machine than NVLink or a similar link joins, another platform than NVIDIA with bf16 on an x86 host and a P(fits) below safest_fit_probability (which count twice), each private_host_hours on a private owner''s machine, each safest_most_interruptions expected and, for the safest, each expected interruption; stock that the source does not state costs the safest unstated_stock_share. An answer that costs more than on_demand_usd is never the best value or the safest. The kept candidates are ranked; those that miss the deadline at the slow end come last (deadline_at_slow_end). A ranking of most_rows rows keeps the first, then the picks. longer_wait: the cheapest of the candidates that finish too late, but within longest_wait_factor times the hours that the ranking allows, if waiting for it saves more than equal_cost_share. on_demand_usd: for reserved, flex-start and spot answers, the lowest cost of the job on demand that takes no longer and may be picked as the safest. safest_usd: the cost of the safest. has_short_term: true if a reservation needs a further term at the slow end of the speed band. costs: rows of candidate_costs at the speeds low and middle.';

CREATE OR REPLACE MACRO cautions_of(
    renter_notice, size_evidence, doubt, tier_class, is_private_host, node_count, has_slow_links,
    has_young_kernels, is_other_platform, is_extrapolated, fit_probability, hours, total_usd, interruptions,
    max_hours, keeps_deadline, has_short_term, on_demand_usd, parameters
) AS
    nullif(list_filter([
        renter_notice,
        CASE
            WHEN is_private_host AND hours > parameters['private_host_hours'] THEN 'private_host'
            WHEN tier_class = 'resold' THEN 'resold'
        END,
        CASE
            WHEN hours > max_hours THEN 'too_late'
            WHEN NOT keeps_deadline THEN 'late_when_slow'
        END,
        CASE WHEN has_short_term THEN 'short_term' END,
        CASE WHEN total_usd > on_demand_usd THEN 'dearer_than_on_demand' END,
        CASE WHEN fit_probability < parameters['safest_fit_probability'] THEN 'tight_fit' END,
        CASE WHEN size_evidence = 'assumed' THEN 'assumed_size' END,
        CASE WHEN doubt IS NOT NULL THEN 'doubted' END,
        CASE WHEN interruptions > parameters['safest_most_interruptions'] THEN 'often_interrupted' END,
        CASE WHEN node_count > 1 THEN 'several_machines' END,
        CASE WHEN has_slow_links THEN 'slow_links' END,
        CASE
            WHEN has_young_kernels THEN 'young_kernels'
            WHEN is_other_platform THEN 'other_platform'
        END,
        CASE WHEN is_extrapolated THEN 'thin_evidence' END
    ], lambda caution: caution IS NOT NULL), []);
COMMENT ON FUNCTION cautions_of IS
    'The cautions of an answer (see cheapest_gpu_per_workload), in a list; null if there are none. The arguments are columns of the rental, of the candidate and its cost in the middle of the speed band, and of ranked_candidates; parameters: the default cost parameters.';

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
    c.gpu, c.gpus_billed, c.share_used, coalesce(r.size_evidence, 'offered') AS size_evidence,
    c.provider, c.source, c.tier,
    c.tier_class, r.region, r.country, r.continent, r.instance_type,
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
    c.interruptions, c.hours_between_interruptions,
    CASE WHEN c.price_kind = 'spot' THEN c.reclaim_restart_seconds / 60 END AS restart_minutes,
    c.checkpoint_interval_minutes, c.storage_gb, c.wait_hours, c.hours, c.billed_hours,
    c.compute_usd, c.interruption_usd, c.failure_usd, c.storage_usd, c.egress_usd, c.commitment_usd,
    k.on_demand_usd, k.safest_usd, c.kept_volume_usd_per_month, c.total_usd,
    k.max_hours, k.meets_deadline, k.keeps_deadline,
    k.longer_wait.usd AS longer_wait_usd, k.longer_wait.hours AS longer_wait_hours,
    way_as_json(k.longer_wait) AS longer_wait_way,
    k.objective, k.pick,
    b.total_usd_low, b.total_usd_high, b.hours_low, b.hours_high,
    CASE k.objective WHEN 'time' THEN b.hours_low ELSE b.total_usd_low END
    <= first_value(CASE k.objective WHEN 'time' THEN b.hours_high ELSE b.total_usd_high END) OVER (
        PARTITION BY k.job, k.ranked_kind, k.objective ORDER BY k.rank
    ) AS ties_with_first,
    cautions_of(
        r.renter_notice, r.size_evidence, r.doubt, c.tier_class, c.is_private_host, c.node_count,
        c.has_slow_links, c.has_young_kernels, c.is_other_platform, c.is_extrapolated, c.fit_probability,
        c.hours, c.total_usd, c.interruptions, k.max_hours, k.keeps_deadline, k.has_short_term,
        k.on_demand_usd, d.p
    ) AS cautions,
    c.total_usd / c.tokens * 1e6 AS usd_per_million_tokens,
    json_object_of(concat_ws(',',
        json_members(j.job_assumptions), json_members(p.assumptions), json_members(r.assumptions),
        assumed(coalesce(p.offload, '') <> '', 'host_ram_gib', r.ram_gib, round(r.host_ram_gib)::BIGINT),
        json_member(c.source, c.asked),
        json_member('bid', CASE WHEN r.bid_exponent > 0 AND j.bid <> 1 THEN j.bid END)
    )) AS assumptions,
    p.seq_len
FROM query_table(ranked) AS k
JOIN query_table(costs) AS c ON c.candidate = k.candidate AND c.speed = 'middle'
JOIN _bands AS b ON b.candidate = k.candidate
CROSS JOIN default_parameters() AS d
JOIN query_table(jobs) AS j ON j.job = k.job
JOIN query_table(plans) AS p
    ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
LEFT JOIN main.rentals AS r ON r.rowid = k.offer;
COMMENT ON MACRO TABLE answers_of IS
    'The ranked candidates with the columns of cheapest_for. costs: the costs of the candidates at all three speeds.';

CREATE OR REPLACE MACRO ranked_jobs(jobs, plans) AS TABLE
WITH _compared_jobs AS (
    SELECT * REPLACE (CASE
        WHEN list_has_any(price_kinds, saving_kinds()) THEN list_append(price_kinds, 'on_demand')
        ELSE price_kinds
    END AS price_kinds)
    FROM query_table(jobs)
),

_ranked_from AS MATERIALIZED (
    FROM job_candidates('_compared_jobs', plans)
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
    FROM candidate_costs('_many_candidates', ['low', 'middle'])
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
    'ranked_jobs for many jobs with short rankings; uses less memory, because only ranked candidates are priced at the high end of their speed.';
