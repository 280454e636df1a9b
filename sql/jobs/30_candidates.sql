-- From jobs to candidates: plans x the rentals that a job's constraints allow, priced.

CREATE OR REPLACE MACRO host_weights_gib(model_download_gib, quantization) AS
    model_download_gib * CASE coalesce(quantization, 'none') WHEN 'none' THEN 1 ELSE 0.25 END;
COMMENT ON FUNCTION host_weights_gib IS
    'Host memory in GiB that the weights of a model take while they are loaded or offloaded. Assumed: a quarter of the 16-bit download (4 of 16 bits, ignoring the scales) if the weights are quantized as they are loaded.';

CREATE OR REPLACE MACRO loaded_quantization(stack, experts, quantization) AS
    CASE WHEN fuses_experts(stack, experts) THEN 'none' ELSE quantization END;
COMMENT ON FUNCTION loaded_quantization IS 'The form in which most of a model''s weights are loaded: unquantized if its experts are fused, because fused experts are never quantized.';

CREATE OR REPLACE MACRO has_host_memory(
    ram_gib, host_ram_gib, node_count, offload, training_state_gib, model_download_gib, quantization
) AS
    -- Machines load the weights through their host memory; if that is not stated, it is taken to suffice.
    coalesce(ram_gib / node_count >= host_weights_gib(model_download_gib, quantization), TRUE)
    -- It must also have room for offloaded tensors: either the training state and gradients the size of the
    -- 16-bit weights, or the adapters and the frozen weights.
    AND (
        coalesce(offload, '') = ''
        OR host_ram_gib >= training_state_gib + host_weights_gib(model_download_gib, quantization)
    );
COMMENT ON FUNCTION has_host_memory IS
    'True if the machines of a rental have enough host memory for a plan. ram_gib: the stated memory of all machines together; host_ram_gib: that memory, stated or assumed.';

CREATE OR REPLACE MACRO is_wanted(value, names) AS
    coalesce(list_contains(names.wanted, value), names.wanted IS NULL)
    AND NOT coalesce(list_contains(names.unwanted, value), names.unwanted IS NOT NULL);
COMMENT ON FUNCTION is_wanted IS
    'True if a value is among the wanted names (null: any value) and not among the unwanted names. An unknown value meets no constraint. names: a field of job_constraints.';

-- The same constraints as in rental_misses, as a test checks: naming the missed ones takes longer to plan. So
-- does an argument that is a row, since each use of it binds all its columns.
CREATE OR REPLACE MACRO is_rental_wanted(
    price_kind, provider, source, tier_class, country, continent, term_days, price_age_days, size_evidence,
    price_kinds, constraints, assumed_sizes
) AS
    list_contains(price_kinds, price_kind)
    AND is_wanted(provider, constraints.provider)
    AND is_wanted(source, constraints.source)
    AND is_wanted(tier_class, constraints.tier_class)
    AND is_wanted(country, constraints.country)
    AND is_wanted(continent, constraints.continent)
    AND coalesce(term_days <= constraints.term_days, TRUE)
    AND coalesce(price_age_days <= constraints.price_age_days, TRUE)
    AND (size_evidence <> 'assumed' OR assumed_sizes);
COMMENT ON FUNCTION is_rental_wanted IS
    'True if a rental meets the constraints of a job that do not concern the plan. The arguments are columns of rentals and, from price_kinds on, of completed_jobs.';

CREATE OR REPLACE MACRO is_open_place(renter_notice, country, constraints) AS
    renter_notice IS DISTINCT FROM 'sanctions'
    OR coalesce(list_contains(constraints.country.wanted, country), FALSE);
COMMENT ON FUNCTION is_open_place IS
    'True if a rental is not in a country under sanctions (renter_notice in countries), or if the job asks for that very country: nobody should pay into such a country by accident. The arguments are columns of rentals and completed_jobs.';

CREATE OR REPLACE MACRO miss(setting, nearest, distance := 0e0) AS
    {'setting': setting, 'nearest': nearest::VARCHAR, 'distance': distance::DOUBLE};
COMMENT ON FUNCTION miss IS
    'A constraint that an answer misses: the setting, the nearest value that the answer would meet and, for numbers, a distance by which answers are ordered (the smaller, the nearer the answer is to the job).';

CREATE OR REPLACE MACRO name_misses(setting, value, names) AS [
    CASE WHEN NOT is_wanted(value, {'wanted': names.wanted, 'unwanted': NULL}) THEN miss(setting, value) END,
    CASE WHEN NOT is_wanted(value, {'wanted': NULL, 'unwanted': names.unwanted})
            THEN miss('exclude_' || setting, value)
    END
];
COMMENT ON FUNCTION name_misses IS
    'The constraints that a value misses of a setting and its exclude_ setting (miss), each null if the value meets it. names: as in is_wanted.';

CREATE OR REPLACE MACRO rental_misses(r, j) AS flatten([
    name_misses('provider', r.provider, j.constraints.provider),
    name_misses('source', r.source, j.constraints.source),
    name_misses('tier', r.tier_class, j.constraints.tier_class),
    name_misses('country', r.country, j.constraints.country),
    name_misses('continent', r.continent, j.constraints.continent),
    [
        CASE WHEN NOT list_contains(j.price_kinds, r.price_kind) THEN miss('kind', r.price_kind) END,
        CASE WHEN r.term_days > j.constraints.term_days
                THEN miss('max_term_days', r.term_days, r.term_days)
        END,
        CASE WHEN r.price_age_days > j.constraints.price_age_days
                THEN miss('max_age_days', r.price_age_days, r.price_age_days)
        END,
        CASE WHEN r.size_evidence = 'assumed' AND NOT j.assumed_sizes THEN miss('assumed_sizes', 'true') END
    ]
]);
COMMENT ON FUNCTION rental_misses IS
    'The constraints of is_rental_wanted that a rental misses (miss), each null if the rental meets it.';

CREATE OR REPLACE MACRO gpu_name(model, form_factor, memory_gb) AS
    concat_ws(' ', model, form_factor, (memory_gb::INTEGER)::VARCHAR || ' GB');
COMMENT ON FUNCTION gpu_name IS 'A GPU''s usual name, with its form factor and memory.';

-- Wheels, containers and recipes are mostly made for CUDA on x86 with bf16; superchips have ARM hosts.
CREATE OR REPLACE MACRO is_other_platform(vendor, form_factor, bf16_dense_tflops) AS
    vendor <> 'nvidia' OR coalesce(form_factor = 'superchip', FALSE) OR bf16_dense_tflops IS NULL;
COMMENT ON FUNCTION is_other_platform IS
    'True if a GPU is on another platform than NVIDIA with bf16 on an x86 host. The arguments are columns of gpus.';

CREATE OR REPLACE MACRO has_slow_links(gpu_count, node_count, nvlink_gb_s, nvlink_topology) AS
    coalesce(gpu_count > node_count * CASE
        WHEN nvlink_gb_s IS NULL THEN 1 WHEN nvlink_topology = 'bridge' THEN 2
    END, FALSE);
COMMENT ON FUNCTION has_slow_links IS
    'True if machines have more cards than NVLink or a similar link joins: one without such a link, two with a bridge. The last two arguments are columns of gpus.';

CREATE OR REPLACE MACRO asked_rentals(jobs, plans) AS TABLE
WITH _asked_machines AS (
    SELECT
        job, machine.source AS source, machine.text AS asked, machine.gpu_id AS gpu_id,
        machine.gpus AS gpus, machine.usd AS usd,
        -- Your own machine already has a disk and the software, and its traffic is free.
        CASE machine.source WHEN 'quote' THEN 1 ELSE 0 END AS charged
    FROM (SELECT job, unnest(machines) AS machine FROM query_table(jobs))
)

SELECT
    m.job, m.asked, (-1)::BIGINT AS offer, m.gpu_id, p.gpu_count, p.node_count,
    m.source AS provider, m.source, m.source AS price_kind,
    CASE m.source WHEN 'quote' THEN m.gpus ELSE p.gpu_count END AS gpus_billed,
    (m.usd * gpus_billed)::DECIMAL(18, 8) AS usd_per_hour, 0::DECIMAL(18, 8) AS host_usd_per_hour,
    CASE m.source WHEN 'quote' THEN d.p['billing_increment_seconds'] ELSE 1 END::INTEGER
        AS billing_increment_seconds,
    (m.charged * d.p['minimum_seconds'])::INTEGER AS minimum_seconds,
    (m.charged * d.p['storage_usd_per_gb_month'])::DECIMAL(18, 8) AS storage_usd_per_gb_month,
    (m.charged * d.p['egress_usd_per_gb'])::DECIMAL(18, 8) AS egress_usd_per_gb,
    (m.charged * d.p['download_usd_per_gb'])::DECIMAL(18, 8) AS download_usd_per_gb,
    0e0 AS local_disk_gb, m.charged * d.p['setup_seconds'] AS setup_seconds,
    m.charged * d.p['image_gb'] AS image_gb, unnest(run_parameters(d.p)),
    hours_between_machine_failures(
        p.gpu_count / p.node_count, d.p['gpu_hours_between_failures'], d.p['host_hours_between_failures']
    ) AS hours_between_failures,
    TRUE AS persistent_disk, TRUE AS disk_outlives_host
FROM _asked_machines AS m
JOIN query_table(plans) AS p
    ON p.job = m.job AND p.gpu_id = m.gpu_id AND p.gpu_count <= m.gpus
    -- A quote covers all its GPUs: as many as possible are used.
    AND (m.source = 'own' OR 2 * p.gpu_count > m.gpus)
CROSS JOIN default_parameters() AS d;
COMMENT ON MACRO TABLE asked_rentals IS
    'The machines that the jobs themselves list, with the columns of rentals: machines with a quoted price (source quote) and the user''s own (source own), one row per job, machine and planned number of GPUs. asked: the machine as written in the job. Anything that a quote does not state is billed at the defaults in cost_parameters; your own machine costs only its electricity. plans: rows of plans, with their job.';

CREATE OR REPLACE MACRO job_candidates(jobs, plans) AS TABLE
WITH _all_rentals AS (
    SELECT *, rowid AS offer
    FROM main.rentals
    UNION ALL BY NAME
    FROM asked_rentals(jobs, plans)
)

SELECT
    j.job, j.tokens, j.epochs,
    p.gpu_id, p.gpu_count, p.node_count, p.tokens_per_second, p.tokens_per_second_low,
    p.tokens_per_second_high, p.training_state_gib, p.result_gib, p.model_download_gib,
    p.fit_probability, p.evidence = 'extrapolated' AS is_extrapolated,
    p.method = 'qlora' AND g.vendor <> 'nvidia' AS has_young_kernels,
    is_other_platform(g.vendor, g.form_factor, g.bf16_dense_tflops) AS is_other_platform,
    has_slow_links(p.gpu_count, p.node_count, g.nvlink_gb_s, g.nvlink_topology) AS has_slow_links,
    gpu_name(g.model, g.form_factor, g.memory_gb) AS gpu,
    r.offer, r.provider, r.source, r.tier, coalesce(r.tier_class, 'dedicated') AS tier_class,
    coalesce(r.tier_class IN ('community', 'marketplace'), FALSE) AS is_private_host,
    r.renter_notice, coalesce(r.available, TRUE) AND coalesce(r.size_evidence, '') <> 'assumed' AS is_sure,
    r.available IS NULL AS is_stock_open,
    r.price_kind, r.term_days, r.gpus_billed,
    (r.usd_per_hour * CASE WHEN r.bid_exponent > 0 THEN j.bid ELSE 1 END)::DECIMAL(18, 8) AS usd_per_hour,
    r.host_usd_per_hour, r.billing_increment_seconds, r.minimum_seconds, r.max_run_hours,
    r.storage_usd_per_gb_month, r.egress_usd_per_gb, r.download_usd_per_gb, r.local_disk_gb,
    r.setup_seconds, r.image_gb, r.download_gb_per_second, r.evaluation_share, r.dataset_bytes_per_token,
    r.checkpoints_kept, r.checkpoint_pause_seconds, r.checkpoint_gb_per_second,
    r.hours_between_failures,
    r.hours_between_interruptions * pow(j.bid, r.bid_exponent) AS hours_between_interruptions,
    r.notice_seconds, r.interruption_wait_seconds, r.further_machine_wait_seconds,
    coalesce(r.capacity_wait_hours, 0) AS capacity_wait_hours,
    r.persistent_disk, r.disk_outlives_host, r.hours_per_month, r.asked,
    row_number() OVER () AS candidate
FROM query_table(jobs) AS j
JOIN query_table(plans) AS p USING (job)
JOIN _all_rentals AS r
    ON r.gpu_id = p.gpu_id AND r.gpu_count = p.gpu_count AND r.node_count = p.node_count
    AND coalesce(r.job = j.job, TRUE)
JOIN main.gpus AS g ON g.gpu_id = p.gpu_id
JOIN main.models AS m ON m.model = p.model
WHERE p.verdict <> 'does_not_fit' AND p.tokens_per_second > 0
    AND (
        j.opened IS NOT NULL
        OR (
            p.fit_probability >= j.min_fit_probability
            AND p.gpu_count BETWEEN coalesce(j.min_gpus, 1) AND j.max_gpus
            AND p.node_count <= coalesce(j.max_nodes, p.node_count)
            AND is_wanted(p.gpu_id, j.constraints.gpu_id)
            AND coalesce(list_contains(j.evidences, p.evidence), j.evidences IS NULL)
        )
    )
    AND (
        r.asked IS NOT NULL
        OR (
            is_open_place(r.renter_notice, r.country, j.constraints)
            AND (
                j.opened = 'all'
                OR (
                    is_rental_wanted(
                        r.price_kind, r.provider, r.source, r.tier_class, r.country, r.continent, r.term_days,
                        r.price_age_days, r.size_evidence, j.price_kinds, j.constraints, j.assumed_sizes
                    )
                    AND (
                        NOT r.is_undercut
                        OR coalesce(
                            j.constraints.provider.wanted, j.constraints.provider.unwanted,
                            j.constraints.country.wanted, j.constraints.country.unwanted,
                            j.constraints.continent.wanted, j.constraints.continent.unwanted
                        ) IS NOT NULL
                    )
                )
            )
            -- A plan for several machines applies only if their network is at least as fast as planned.
            AND coalesce(r.node_network_gbps, 0) >= coalesce(p.node_network_gbps, 0)
            AND has_host_memory(
                r.ram_gib, r.host_ram_gib, p.node_count, p.offload, p.training_state_gib,
                p.model_download_gib,
                loaded_quantization(p.stack, m.experts, p.quantization)
            )
        )
    );
COMMENT ON MACRO TABLE job_candidates IS
    'Every candidate for the jobs: one row per job, plan and rental that can run the job within its constraints, with a number (candidate) and everything that its cost depends on. The rentals are those on the market (offer: their row in rentals) and the machines that the jobs list (asked_rentals; offer -1), which only have to meet the constraints on the GPU and the number of GPUs. If a job''s opened is plans, its constraints on plans are skipped; if opened is all, all its constraints are skipped. See completed_jobs for the columns of jobs; plans: rows of plans, with their job. Machines on the market are skipped if their stated host memory is smaller than the weights that the job downloads, or than a quarter of that if the weights are quantized (offers_latest already skips machines with too little for any job: host_too_small).';

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
    'The cost and hours of each candidate at the middle, low end or high end of its speed band: one row per candidate and speed, with the columns of cost_of.';

CREATE OR REPLACE MACRO judged_costs(costs, jobs) AS TABLE
SELECT
    c.*, j.max_hours, j.deadline_is_strict, j.objectives, j.most_rows, j.ranks_each_kind, j.hour_worth,
    c.offer < 0 OR list_contains(j.price_kinds, c.price_kind) AS is_asked_kind,
    CASE
        WHEN coalesce(j.opened, '') <> 'all' AND c.total_usd > j.max_usd THEN 'too_expensive'
        WHEN c.hours - c.wait_hours > c.max_run_hours THEN 'stops_before_the_end'
        WHEN c.share_used < d.p['least_share_used'] THEN 'mostly_unused'
        WHEN c.interruptions > d.p['most_interruptions'] THEN 'interrupted_too_often'
    END AS refusal
FROM query_table(costs) AS c
JOIN query_table(jobs) AS j USING (job)
CROSS JOIN default_parameters() AS d
WHERE c.speed = 'middle';
COMMENT ON MACRO TABLE judged_costs IS
    'The candidates at the middle of their speed band, with the columns of their jobs that determine the ranking, and the reason (refusal) why a candidate is no answer: too_expensive (above the budget), stops_before_the_end (the machine runs for at most max_run_hours), mostly_unused (the job uses less than least_share_used of the GPU-hours paid for) or interrupted_too_often (more than most_interruptions are expected); null if it is an answer. The limits are cost_parameters.';

CREATE OR REPLACE MACRO eligible_costs(costs, jobs) AS TABLE
FROM judged_costs(costs, jobs)
WHERE refusal IS NULL;
COMMENT ON MACRO TABLE eligible_costs IS 'The candidates of judged_costs that are answers.';

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
    'Every rental option that can run the jobs within their constraints, with its price: one row per job, price kind, GPU, number of GPUs, source, tier and term, with the cheapest offer for that combination. jobs and plans: as for job_candidates.';
