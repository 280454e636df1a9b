-- Short questions at a SQL prompt, and why an answer is what it is: by the same macros as the tables.

CREATE OR REPLACE MACRO one_gpu(wanted) AS (
    SELECT
        CASE
            WHEN len(_meant) = 1 THEN _meant[1]
            WHEN len(_meant) > 1
                THEN error(wanted || ' is several GPUs: name one of ' || array_to_string(_meant[:12], ', ')
                    || CASE WHEN len(_meant) > 12 THEN ', ...' ELSE '' END)
            WHEN name_key(wanted) <> '' THEN error(
                'no gpu ' || wanted || nearest_names_text(_nearest, 'gpus')
            )
            ELSE error('name a GPU; main.gpus lists them')
        END
    FROM (
        SELECT
            any_value(meanings) FILTER (key = name_key(wanted)) AS _meant,
            arg_max(name, jaro_winkler_similarity(key, name_key(wanted)), 3)
                FILTER (jaro_winkler_similarity(key, name_key(wanted)) >= 0.8) AS _nearest
        FROM main.job_names
        WHERE setting = 'gpu'
    )
);
COMMENT ON FUNCTION one_gpu IS
    'The gpu_id of a card by any name that a job may give it (job_names): a gpu_id is that card alone, and a family of one card is that card. Raises an error that lists the cards of a larger family, or the nearest names.';

CREATE OR REPLACE MACRO planned_gpus(gpus) AS
    CASE
        WHEN coalesce(list_contains([1e0, 2e0, 4e0, 8e0, 16e0, 32e0, 64e0], try_cast(gpus AS DOUBLE)), FALSE)
            THEN try_cast(gpus AS INTEGER)
        ELSE error(
            'plans are for 1, 2, 4, 8, 16, 32 and 64 GPUs, not for ' || coalesce(gpus::VARCHAR, 'null')
        )
    END;
COMMENT ON FUNCTION planned_gpus IS 'A number of GPUs for which there are plans; raises an error for others.';

CREATE OR REPLACE MACRO sequence_tokens(tokens) AS
    CASE
        WHEN coalesce(is_number_in(nullif(tokens::VARCHAR, ''), 1, 1e9, TRUE) AND tokens IS NOT NULL, FALSE)
            THEN try_cast(tokens AS INTEGER)
        ELSE error(number_refusal('tokens_per_sequence', coalesce(tokens::VARCHAR, ''), 1e0, 1e9, TRUE))
    END;
COMMENT ON FUNCTION sequence_tokens IS
    'The tokens of a sequence; raises an error for what is no whole number, below 1 or above 1e9.';

CREATE OR REPLACE MACRO fits(
    wanted_model, wanted_method, wanted_gpu, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16
) AS TABLE
WITH _fits_asked AS (
    SELECT
        'fits' AS job, wanted_model AS model, wanted_method AS method, 1e0 AS tokens,
        sequence_tokens(tokens_per_sequence) AS seq_len, rank_of_adapters AS lora_rank,
        planned_gpus(gpus) AS max_gpus
),

_fits_jobs AS (
    SELECT * FROM completed_jobs('_fits_asked')
)

SELECT p.* EXCLUDE (job)
FROM job_plans('_fits_jobs') AS p
WHERE p.gpu_id = one_gpu(wanted_gpu) AND p.gpu_count = planned_gpus(gpus);
COMMENT ON MACRO TABLE fits IS
    'Does a training job fit on a GPU? fits(model, method, gpu, gpus := 1, tokens_per_sequence := 2048, rank_of_adapters := 16) gives the row of plans: verdict, memory in GiB term by term, speed, and infeasible_reason. memory_parts adds its terms up, largest_micro_batches says how far the micro-batch goes. Names are those that jobs take (job_names; one_gpu for the GPU); unknown ones, a family of several GPUs and numbers out of bounds raise an error. No row: the GPU''s specifications are incomplete, or several machines of it are not planned.';

CREATE OR REPLACE MACRO fits_on(wanted_gpu, gpus := 1, tokens_per_sequence := 2048) AS TABLE
WITH _fits_on_methods (method, lora_rank) AS (
    VALUES ('qlora', 16), ('lora', 16), ('full', NULL)
),

_fits_on_jobs AS (
    SELECT
        concat_ws(' ', m.model, t.method) AS job, m.model, m.params_total / 1e9 AS params_billion, t.method,
        sequence_tokens(tokens_per_sequence) AS seq_len, t.lora_rank, planned_gpus(gpus) AS max_gpus,
        [one_gpu(wanted_gpu)] AS planned_gpus
    FROM main.models AS m
    CROSS JOIN _fits_on_methods AS t
    WHERE m.max_context IS NULL OR m.max_context >= sequence_tokens(tokens_per_sequence)
),

_fits_on_ready AS (
    SELECT j.job, p.*
    FROM grid_plans() AS p
    JOIN _fits_on_jobs AS j
        ON j.model = p.model AND j.method = p.method AND j.seq_len = p.seq_len
        AND j.lora_rank IS NOT DISTINCT FROM p.lora_rank
),

-- What the file has no plans of is planned now.
_fits_on_unplanned AS (
    SELECT * EXCLUDE (params_billion)
    FROM _fits_on_jobs
    ANTI JOIN _fits_on_ready USING (job)
),

_fits_on_plans AS (
    SELECT
        job, gpu_id, gpu_count, verdict, fit_probability, memory_gib, usable_memory_gib, micro_batch,
        checkpointing, sharding, tokens_per_second, evidence, assumptions
    FROM _fits_on_ready
    UNION ALL BY NAME
    SELECT
        job, gpu_id, gpu_count, verdict, fit_probability, memory_gib, usable_memory_gib, micro_batch,
        checkpointing, sharding, tokens_per_second, evidence, assumptions
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
    'Which models can be trained on a GPU, by method (qlora and lora with rank 16, full)? fits_on(gpu, gpus := 1, tokens_per_sequence := 2048) gives one row per model and method: the verdict, P(fits), and the plan that is fastest there. Models whose context is shorter than the sequences are left out. The GPU may have any name that a job may give it (one_gpu); unknown names, a family of several GPUs and numbers out of bounds raise an error. Fast where the plans are in the file already (grid_plans).';

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
        round(overhead_gib, 2)::DECIMAL(12, 2) AS process,
        round(usable_memory_gib - memory_margin_gib, 2)::DECIMAL(12, 2) AS needed
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
                'meaning': 'not in use; freed when needed'
            },
            {'place': 7, 'part': 'driver and libraries', 'gib': process, 'meaning': 'the process itself'},
            {'place': 8, 'part': 'peak memory', 'gib': peak, 'meaning': 'the sum of the above'},
            {
                'place': 9, 'part': 'margin', 'gib': needed - (peak - kept),
                'meaning': 'needed beyond what is in use: lost between tensors'
            },
            {
                'place': 10, 'part': 'needed at least', 'gib': needed,
                'meaning': 'the peak and the margin, less what the allocator keeps'
            }
        ], recursive := TRUE)
    FROM _parts_plans
)

FROM _parts_listed
ORDER BY job, gpu_id, gpu_count, place;
COMMENT ON MACRO TABLE memory_parts IS
    'Where the memory goes, in GiB per GPU to the hundredth, in parts that add up to the peak, and what is needed at least: the peak without what the allocator keeps, and a margin. Columns: job, gpu_id, gpu_count, place, part, gib, meaning. plans: rows of job_plans, or of plans with a column job.';

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
    'Two GPUs side by side: compare_gpus(one, other) gives one row per fact of gpu_compare that at least one of them has, with both values as text. A GPU may have any name that a job may give it (one_gpu); unknown names and a family of several GPUs raise an error.';

CREATE OR REPLACE MACRO why_total(ranked) AS TABLE
WITH _total_parts AS (
    SELECT
        job, rank,
        unnest([
            {
                'place': 1, 'part': 'machine', 'usd': compute_usd,
                'how': format(
                    '{:,.2f} {} x {:,.4f} USD', billed_hours,
                    CASE price_kind
                        WHEN 'reserved' THEN format('hours of whole terms of {} days', term_days)
                        WHEN 'own' THEN 'hours of electricity'
                        ELSE 'billed hours'
                    END,
                    usd_per_hour::DOUBLE
                )
                || CASE
                    WHEN host_usd_per_hour > 0
                        THEN format(' and {:,.4f} for its host', host_usd_per_hour::DOUBLE)
                    ELSE ''
                END
                || CASE
                    WHEN price_kind <> 'reserved' THEN format(
                        ': set-up {:,.2f}, training {:,.2f}, evaluation {:,.2f}',
                        setup_hours, train_hours, evaluation_hours
                    )
                    ELSE ''
                END
                || CASE
                    WHEN price_kind <> 'reserved'
                        AND billed_hours - setup_hours - train_hours - evaluation_hours >= 0.005 THEN format(
                            ', and {:,.2f} unused: the minimum, or a started billing step',
                            billed_hours - setup_hours - train_hours - evaluation_hours
                        )
                    ELSE ''
                END
            },
            {
                'place': 2, 'part': 'interruptions', 'usd': interruption_usd,
                'how': format('{:,.2f} expected, {:,.2f} paid hours', interruptions, interruption_hours)
            },
            {
                'place': 3, 'part': 'failures', 'usd': failure_usd,
                'how': format('{:,.3f} expected, {:,.2f} paid hours', failures, failure_hours)
            },
            {
                'place': 4, 'part': 'disk', 'usd': storage_usd,
                'how': CASE
                    WHEN price_kind = 'own' THEN 'your own'
                    WHEN storage_usd = 0 THEN 'not charged'
                    ELSE format('{:,.0f} GB for as long as the machine runs', storage_gb)
                END
            },
            {
                'place': 5, 'part': 'data', 'usd': egress_usd,
                'how': CASE
                    WHEN price_kind = 'own' THEN 'your own connection'
                    WHEN egress_usd = 0 THEN 'downloads and uploads, not charged'
                    ELSE 'the result out, and image, data set and model in, where that is charged'
                END
            },
            {'place': 6, 'part': 'total', 'usd': total_usd, 'how': 'the sum of the above'}
        ], recursive := TRUE)
    FROM query_table(ranked)
)

FROM _total_parts
ORDER BY job, rank, place;
COMMENT ON MACRO TABLE why_total IS
    'Why an answer costs what it does, in USD: the parts of its total, and how each comes about: job, rank, place, part, usd, how. ranked: rows of cheapest_for.';

CREATE OR REPLACE MACRO why_not_for(jobs, plans, ranked) AS TABLE
WITH _not_plans AS (
    SELECT
        j.job, p.gpu_id,
        bool_or(p.verdict <> 'does_not_fit') AS fits,
        max(p.fit_probability) AS fit_probability,
        min(p.gpu_count) FILTER (
            p.verdict <> 'does_not_fit' AND p.fit_probability >= j.min_fit_probability
        ) AS fits_from_gpus,
        list(DISTINCT p.gpu_count ORDER BY p.gpu_count) FILTER (
            p.verdict <> 'does_not_fit' AND p.fit_probability >= j.min_fit_probability
            AND p.gpu_count BETWEEN coalesce(j.min_gpus, 1) AND j.max_gpus
        ) AS counts,
        arg_max(p.infeasible_reason, p.gpu_count) AS infeasible_reason
    FROM query_table(jobs) AS j
    JOIN query_table(plans) AS p USING (job)
    GROUP BY j.job, p.gpu_id
),

_not_offers AS (
    SELECT
        j.job, r.gpu_id, r.gpu_count, r.node_count, r.node_network_gbps, r.ram_gib, r.host_ram_gib,
        is_rental_wanted(
            r.price_kind, r.provider, r.source, r.tier_class, r.country, r.continent, r.term_days,
            r.price_age_days, r.size_evidence, j.price_kinds, j.providers, j.excluded_providers,
            j.sources, j.excluded_sources,
            j.tier_classes, j.countries, j.continents, j.max_term_days, j.max_age_days, j.assumed_sizes
        )
        AND r.node_count <= coalesce(j.max_nodes, r.node_count) AS is_asked_for,
        {
            'usd': (r.usd_per_hour / r.gpus_billed)::DOUBLE,
            'way': r.provider || ' (' || replace(r.price_kind, '_', '-')
            || coalesce(', ' || r.country, '') || ')'
        } AS offer
    FROM query_table(jobs) AS j
    CROSS JOIN main.rentals AS r
),

-- The offers that are asked for in a number in which the job fits, with what the plan needs of them.
_not_usable AS (
    SELECT
        o.job, o.gpu_id,
        coalesce(o.node_network_gbps, 0) AS network_gbps, coalesce(p.node_network_gbps, 0) AS planned_gbps,
        coalesce(o.ram_gib, o.host_ram_gib) / o.node_count AS host_gib,
        host_weights_gib(p.model_download_gib, p.quantization)
        + CASE WHEN coalesce(p.offload, '') = '' THEN 0 ELSE p.training_state_gib END AS planned_host_gib,
        has_host_memory(
            o.ram_gib, o.host_ram_gib, p.node_count, p.offload, p.training_state_gib, p.model_download_gib,
            p.quantization
        ) AS has_host_memory
    FROM _not_offers AS o
    JOIN _not_plans AS n ON n.job = o.job AND n.gpu_id = o.gpu_id AND list_contains(n.counts, o.gpu_count)
    JOIN query_table(plans) AS p
        ON p.job = o.job AND p.gpu_id = o.gpu_id AND p.gpu_count = o.gpu_count AND p.node_count = o.node_count
    WHERE o.is_asked_for
),

_not_hosts AS (
    SELECT
        job, gpu_id,
        bool_or(network_gbps >= planned_gbps) AS has_network,
        bool_or(network_gbps >= planned_gbps AND has_host_memory) AS has_host_memory,
        max(network_gbps) AS network_gbps, min(planned_gbps) AS planned_gbps,
        max(host_gib) AS host_gib, min(planned_host_gib) AS planned_host_gib
    FROM _not_usable
    GROUP BY job, gpu_id
),

_not_sold AS (
    SELECT
        o.job, o.gpu_id,
        bool_or(o.is_asked_for) AS is_asked_for,
        bool_or(o.is_asked_for AND list_contains(p.counts, o.gpu_count)) AS is_sold_so,
        list(DISTINCT o.gpu_count ORDER BY o.gpu_count) FILTER (o.is_asked_for) AS sold_counts,
        min(o.offer) AS cheapest
    FROM _not_offers AS o
    LEFT JOIN _not_plans AS p USING (job, gpu_id)
    GROUP BY o.job, o.gpu_id
),

_not_ranked AS (
    SELECT
        job, gpu_id, min(rank) AS rank,
        arg_min(gpu_count, rank) AS gpu_count, arg_min(provider, rank) AS provider,
        arg_min(total_usd, rank) AS total_usd, arg_min(hours, rank) AS hours
    FROM query_table(ranked)
    GROUP BY job, gpu_id
),

_not_reasons AS (
    SELECT
        j.job, g.gpu_id, r.rank, r.gpu_count, r.provider, r.total_usd, r.hours,
        j.max_gpus, j.min_fit_probability, p.fits_from_gpus, p.fit_probability, p.infeasible_reason,
        s.cheapest, s.sold_counts, p.counts, h.network_gbps, h.planned_gbps, h.host_gib, h.planned_host_gib,
        CASE
            WHEN r.rank IS NOT NULL THEN 'ranked'
            WHEN p.job IS NULL THEN 'not_planned'
            WHEN NOT p.fits THEN 'does_not_fit'
            WHEN p.fits_from_gpus IS NULL THEN 'might_not_fit'
            WHEN p.counts IS NULL THEN 'fits_in_another_number'
            WHEN s.job IS NULL THEN 'no_price'
            WHEN NOT is_wanted(g.gpu_id, j.gpu_ids, j.excluded_gpu_ids) THEN 'not_asked_for'
            WHEN NOT s.is_asked_for THEN 'not_offered_so'
            WHEN NOT coalesce(s.is_sold_so, FALSE) THEN 'not_rented_in_that_number'
            WHEN NOT coalesce(h.has_network, TRUE) THEN 'network_too_slow'
            WHEN NOT coalesce(h.has_host_memory, TRUE) THEN 'host_memory_too_small'
            ELSE 'too_late_or_too_expensive'
        END AS reason
    FROM query_table(jobs) AS j
    CROSS JOIN main.gpus AS g
    LEFT JOIN _not_plans AS p ON p.job = j.job AND p.gpu_id = g.gpu_id
    LEFT JOIN _not_sold AS s ON s.job = j.job AND s.gpu_id = g.gpu_id
    LEFT JOIN _not_hosts AS h ON h.job = j.job AND h.gpu_id = g.gpu_id
    LEFT JOIN _not_ranked AS r ON r.job = j.job AND r.gpu_id = g.gpu_id
)

SELECT
    job, gpu_id, rank, total_usd, hours, reason,
    CASE reason
        WHEN 'ranked' THEN gpu_count || ' of it at ' || provider
        WHEN 'not_planned' THEN 'its specifications are not complete'
        WHEN 'does_not_fit' THEN infeasible_reason
        WHEN 'might_not_fit' THEN format(
            'fits with a probability of {}% at most, {}% is asked for',
            floor(100 * fit_probability)::INTEGER, round(100 * min_fit_probability)::INTEGER
        )
        WHEN 'fits_in_another_number' THEN format(
            'fits on {} or more, at most {} are asked for', fits_from_gpus, max_gpus
        )
        WHEN 'no_price' THEN 'no source has a ranked price for it'
        WHEN 'not_asked_for' THEN 'the job leaves it out'
        WHEN 'not_offered_so' THEN format(
            'no offer of it meets what is asked of price kind, place, provider, tier and age; the cheapest '
            || 'of any is {:.2f} USD per GPU and hour at {}', cheapest.usd, cheapest.way
        )
        WHEN 'not_rented_in_that_number' THEN
            'fits on ' || array_to_string(counts, ', ') || ', and is rented in '
            || array_to_string(sold_counts, ', ')
        WHEN 'network_too_slow' THEN format(
            'several machines of it are planned with {:,.0f} Gbit/s between them, the fastest that can be '
            || 'rented have {:,.0f}', planned_gbps::DOUBLE, network_gbps::DOUBLE
        )
        WHEN 'host_memory_too_small' THEN format(
            'each machine needs {:,.0f} GiB of host memory to load the model, the largest that can be '
            || 'rented has {:,.0f}', ceil(planned_host_gib), floor(host_gib)
        )
        ELSE 'what can be rented ends after the deadline, costs more than the budget, stops before the job '
            || 'is done, or is a reservation of which too little would be used'
    END AS detail
FROM _not_reasons
ORDER BY job, rank NULLS LAST, gpu_id;
COMMENT ON MACRO TABLE why_not_for IS
    'Where each GPU is in the ranking of a job, and why some are not in it: job, gpu_id, rank (its best), total_usd, hours, reason (ranked, not_planned, does_not_fit, might_not_fit, fits_in_another_number, no_price, not_asked_for, not_offered_so, not_rented_in_that_number, network_too_slow, host_memory_too_small, too_late_or_too_expensive) and detail. jobs: rows of completed_jobs; plans: of job_plans; ranked: of cheapest_for.';

CREATE OR REPLACE MACRO cost_history(jobs, ranked) AS TABLE
WITH _history_prices AS (
    SELECT
        j.job, o.day, o.source, o.gpu_id, o.tier, o.price_kind, coalesce(o.term_days, 0) AS term_days,
        min(o.usd_per_gpu_hour)::DOUBLE AS usd_per_gpu_hour
    FROM query_table(jobs) AS j
    JOIN recorded_prices() AS o
        ON list_contains(j.price_kinds, o.price_kind)
        AND is_wanted(o.country, j.countries, NULL) AND is_wanted(o.continent, j.continents, NULL)
    GROUP BY ALL
),

_history_days AS (
    SELECT DISTINCT job, day FROM _history_prices
),

-- On each day a source has the prices of its newest capture, while they are not stale.
_history_captures AS (
    SELECT d.job, d.day, c.source, max(c.day) AS captured
    FROM _history_days AS d
    JOIN (SELECT DISTINCT job, source, day FROM _history_prices) AS c ON c.job = d.job AND c.day <= d.day
    JOIN main.sources AS s ON s.source = c.source AND c.day >= d.day - s.stale_after_days
    GROUP BY d.job, d.day, c.source
),

_history_ranked AS (
    SELECT
        r.*, coalesce(r.term_days, 0) AS _term_days,
        (r.compute_usd + r.interruption_usd + r.failure_usd)::DOUBLE
        * (r.usd_per_hour / (r.usd_per_hour + r.host_usd_per_hour))::DOUBLE AS _priced_usd
    FROM query_table(ranked) AS r
),

_history_totals AS (
    SELECT
        c.job, c.day, c.captured, r.gpu, r.gpu_id, r.gpu_count, r.provider, r.source, r.tier, r.price_kind,
        r.hours, then_price.usd_per_gpu_hour,
        r.total_usd::DOUBLE
        + r._priced_usd * (then_price.usd_per_gpu_hour / now_price.usd_per_gpu_hour - 1) AS total_usd
    FROM _history_captures AS c
    JOIN _history_prices AS then_price
        ON then_price.job = c.job AND then_price.source = c.source AND then_price.day = c.captured
    JOIN _history_ranked AS r
        ON r.job = c.job AND r.source = c.source AND r.gpu_id = then_price.gpu_id
        AND r.tier IS NOT DISTINCT FROM then_price.tier AND r.price_kind = then_price.price_kind
        AND r._term_days = then_price.term_days
    JOIN _history_prices AS now_price
        ON now_price.job = r.job AND now_price.source = r.source AND now_price.day = r.price_day
        AND now_price.gpu_id = r.gpu_id AND now_price.tier IS NOT DISTINCT FROM r.tier
        AND now_price.price_kind = r.price_kind AND now_price.term_days = r._term_days
),

_history_sources AS (
    SELECT job, day, count(DISTINCT source) AS sources
    FROM _history_totals
    GROUP BY job, day
)

SELECT
    job, day, round(total_usd, 4) AS total_usd, hours, gpu, gpu_id, gpu_count, provider, source, tier,
    price_kind, usd_per_gpu_hour, sources, captured AS price_day
FROM _history_totals
JOIN _history_sources USING (job, day)
QUALIFY row_number() OVER (
    PARTITION BY job, day ORDER BY total_usd, hours, gpu_count, gpu_id, source, tier NULLS LAST
) = 1
ORDER BY job, day;
COMMENT ON MACRO TABLE cost_history IS
    'What a job cost at its cheapest on each day that is on record, in USD: today''s plans and terms at each day''s prices, each source at its newest capture until that is stale. Only ways that can be rented today count: sources, cards and tiers that are gone since are left out (sources says how many had a price that day). jobs: rows of completed_jobs; ranked: of cheapest_for.';

CREATE OR REPLACE MACRO machine_ranks(jobs, plans, ranked) AS TABLE
WITH _rank_machines AS (
    SELECT job, machine.source, machine.text AS asked, machine.gpus, machine.gpu_id
    FROM (SELECT job, unnest(machines) AS machine FROM query_table(jobs))
),

-- With this source nothing of the market is a candidate; what is asked for is one whatever its source.
_rank_jobs AS (
    SELECT * REPLACE (['quote'] AS sources)
    FROM open_jobs(jobs)
),

_rank_candidates AS MATERIALIZED (
    FROM job_candidates('_rank_jobs', plans)
),

_rank_costs AS MATERIALIZED (
    FROM candidate_costs('_rank_candidates', ['middle'])
),

_rank_missed AS (
    SELECT
        c.job, c.source, c.asked, c.gpu_count, c.total_usd, c.hours,
        list_filter([
            CASE
                WHEN NOT is_wanted(c.gpu_id, j.gpu_ids, j.excluded_gpu_ids)
                    THEN {'name': 'gpu', 'why': 'the job leaves this GPU out'}
            END,
            CASE WHEN c.gpu_count > j.max_gpus THEN {
                'name': 'gpus',
                'why': format('it uses {} GPUs, at most {} are asked for', c.gpu_count, j.max_gpus)
            } END,
            CASE WHEN c.gpu_count < j.min_gpus THEN {
                'name': 'min_gpus',
                'why': format('it uses {} GPUs, at least {} are asked for', c.gpu_count, j.min_gpus)
            } END,
            CASE WHEN c.node_count > j.max_nodes THEN {
                'name': 'max_nodes',
                'why': format('it is {} machines, at most {} are asked for', c.node_count, j.max_nodes)
            } END,
            CASE WHEN p.fit_probability < j.min_fit_probability THEN {
                'name': 'min_fit_probability',
                'why': format(
                    'it fits with a probability of {}%, {:g}% is asked for',
                    floor(100 * p.fit_probability)::INTEGER, 100 * j.min_fit_probability
                )
            } END,
            CASE WHEN NOT is_wanted(p.evidence, j.evidences, NULL) THEN {
                'name': 'evidence',
                'why': format('its speed is {}, at least {} is asked for', p.evidence, j.evidences[-1])
            } END,
            CASE WHEN c.hours > j.max_hours THEN {
                'name': 'max_hours',
                'why': format('it takes {:,.1f} hours, the deadline is {:,g}', c.hours, j.max_hours)
            } END,
            CASE WHEN c.total_usd > j.max_usd THEN {
                'name': 'max_usd',
                'why': format('it costs {:,.2f} USD, the budget is {:,.2f}', c.total_usd::DOUBLE, j.max_usd)
            } END
        ], lambda missed: missed IS NOT NULL) AS missed,
        list_contains(j.objectives, 'pareto') AS is_pareto
    FROM _rank_costs AS c
    JOIN query_table(jobs) AS j ON j.job = c.job
    JOIN query_table(plans) AS p
        ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
    WHERE c.asked IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY c.job, c.source, c.asked ORDER BY len(missed), c.total_usd, c.hours, c.gpu_count
    ) = 1
),

_rank_ranked AS (
    SELECT
        job, source, raw_label AS asked, min(rank) AS rank, arg_min(gpu_count, rank) AS gpu_count,
        arg_min(total_usd, rank) AS total_usd, arg_min(hours, rank) AS hours
    FROM query_table(ranked)
    WHERE source IN ('quote', 'own')
    GROUP BY job, source, raw_label
),

_rank_lengths AS (
    SELECT job, max(rank) AS ranks
    FROM query_table(ranked)
    GROUP BY job
),

-- What the plans say of the most GPUs of a machine that a job can use.
_rank_plans AS (
    SELECT
        m.job, m.source, m.asked, any_value(m.gpus) AS gpus, any_value(m.gpu_id) AS gpu_id,
        bool_or(p.job IS NOT NULL) AS is_planned,
        arg_max(p.infeasible_reason, p.gpu_count) FILTER (
            p.verdict = 'does_not_fit' AND p.gpu_count <= m.gpus
        ) AS infeasible_reason,
        any_value(j.max_gpus) AS max_gpus
    FROM _rank_machines AS m
    JOIN query_table(jobs) AS j ON j.job = m.job
    LEFT JOIN query_table(plans) AS p ON p.job = m.job AND p.gpu_id = m.gpu_id
    GROUP BY m.job, m.source, m.asked
)

SELECT
    m.job, m.source, m.asked AS machine, r.rank, coalesce(l.ranks, 0) AS ranks,
    coalesce(r.gpu_count, c.gpu_count) AS gpu_count, coalesce(r.total_usd, c.total_usd) AS total_usd,
    coalesce(r.hours, c.hours) AS hours,
    CASE
        WHEN r.rank IS NOT NULL THEN 'ranked'
        WHEN len(c.missed) > 0 THEN array_to_string(list_transform(c.missed, lambda each: each.name), ' + ')
        WHEN c.is_pareto THEN 'objective'
        WHEN c.job IS NOT NULL THEN 'another_costs_less'
        WHEN m.infeasible_reason IS NOT NULL THEN 'does_not_fit'
        WHEN m.is_planned AND m.gpus > m.max_gpus THEN 'gpus'
        ELSE 'not_planned'
    END AS reason,
    CASE reason
        WHEN 'ranked' THEN 'uses ' || r.gpu_count || ' of its GPUs'
        WHEN 'objective' THEN 'another answer beats it in cost and hours'
        WHEN 'another_costs_less' THEN 'another such machine costs less in as many GPUs'
        WHEN 'does_not_fit' THEN 'the job does not fit: ' || m.infeasible_reason
        WHEN 'not_planned' THEN
            'there is no plan for so many of these GPUs, or their specifications are not complete'
        ELSE coalesce(
            array_to_string(list_transform(c.missed, lambda each: each.why), ' and '),
            format('it has {} GPUs, at most {} are asked for', m.gpus, m.max_gpus)
        )
    END AS detail
FROM _rank_plans AS m
LEFT JOIN _rank_ranked AS r ON r.job = m.job AND r.source = m.source AND r.asked = m.asked
LEFT JOIN _rank_missed AS c ON c.job = m.job AND c.source = m.source AND c.asked = m.asked
LEFT JOIN _rank_lengths AS l ON l.job = m.job
ORDER BY m.job, r.rank NULLS LAST, m.source, m.asked;
COMMENT ON MACRO TABLE machine_ranks IS
    'Where the machines that jobs name themselves (quote, own) are in the ranking, and why some are not in it: job, source (quote or own), machine (as it was given), rank (its best), ranks (how many there are), gpu_count, total_usd, hours (of the way nearest to being ranked), reason (ranked, the columns of jobs that it does not meet with " + " between them, does_not_fit, objective, another_costs_less, not_planned) and detail. jobs: rows of completed_jobs; plans: of job_plans; ranked: of cheapest_for.';

CREATE OR REPLACE MACRO machine_ranks_for(jobs) AS TABLE
WITH _machine_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_machine_plans AS MATERIALIZED (
    SELECT * FROM job_plans('_machine_jobs')
),

_machine_ranked AS MATERIALIZED (
    SELECT * FROM ranked_jobs('_machine_jobs', '_machine_plans')
)

FROM machine_ranks('_machine_jobs', '_machine_plans', '_machine_ranked');
COMMENT ON MACRO TABLE machine_ranks_for IS
    'machine_ranks for your own jobs: where quotes and own machines rank in cheapest_for, and why some have no row there. jobs: the name of a table or CTE; see completed_jobs for its columns.';
