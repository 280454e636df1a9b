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

CREATE OR REPLACE MACRO fits_on(wanted_gpu, gpus := 1, tokens_per_sequence := 2048) AS TABLE
WITH _fits_on_methods (method, lora_rank) AS (
    VALUES ('qlora', 16), ('lora', 16), ('full', NULL)
),

_fits_on_jobs AS (
    SELECT
        concat_ws(' ', m.model, t.method) AS job, m.model, m.params_total / 1e9 AS params_billion, t.method,
        tokens_per_sequence AS seq_len, t.lora_rank, gpus AS max_gpus
    FROM main.models AS m
    CROSS JOIN _fits_on_methods AS t
    WHERE m.max_context IS NULL OR m.max_context >= tokens_per_sequence
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
    SELECT CASE WHEN count(*) = 0 THEN error('No GPU ' || wanted_gpu || '; main.gpus lists them.') END
        AS found
    FROM main.gpus
    WHERE gpu_id = wanted_gpu
)

SELECT
    j.model, j.params_billion, j.method, coalesce(p.verdict, 'does_not_fit') AS verdict,
    p.fit_probability, p.memory_gib, p.usable_memory_gib, p.micro_batch, p.checkpointing, p.sharding,
    p.tokens_per_second, p.evidence, p.assumptions
FROM _fits_on_jobs AS j
CROSS JOIN _fits_on_gpu AS g
LEFT JOIN _fits_on_plans AS p ON p.job = j.job AND p.gpu_id = wanted_gpu AND p.gpu_count = gpus
WHERE g.found IS NULL
ORDER BY j.params_billion, j.model, j.method;
COMMENT ON MACRO TABLE fits_on IS
    'Which models can be trained on a GPU, by method (qlora and lora with rank 16, full)? fits_on(gpu_id, gpus := 1, tokens_per_sequence := 2048) gives one row per model and method: the verdict, P(fits), and the plan that is fastest there. Models whose context is shorter than the sequences are left out. Unknown names raise an error. Fast where the plans are in the file already (grid_plans).';

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
                'meaning': 'not in use; given back at need'
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

CREATE OR REPLACE MACRO why_total(ranked) AS TABLE
WITH _total_parts AS (
    SELECT
        job, rank,
        unnest([
            {
                'place': 1, 'part': 'machine', 'usd': compute_usd,
                'how': CASE
                    WHEN price_kind = 'reserved'
                        THEN format('{:,.1f} hours of whole terms of {} days', billed_hours, term_days)
                    ELSE format(
                        '{:,.2f} billed hours: set-up {:,.2f}, training {:,.2f}, evaluation {:,.2f}',
                        billed_hours, setup_hours, train_hours, evaluation_hours
                    )
                END || format(' x {:,.4f} USD', usd_per_hour::DOUBLE)
                || CASE
                    WHEN host_usd_per_hour > 0
                        THEN format(' and {:,.4f} for its host', host_usd_per_hour::DOUBLE)
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
                'how': format('{:,.0f} GB that is charged, while the machine runs', storage_gb)
            },
            {
                'place': 5, 'part': 'data', 'usd': egress_usd,
                'how': 'the result out, and image, data set and model in, where that is charged'
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
        j.job, r.gpu_id, r.gpu_count,
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
        s.cheapest, s.sold_counts, p.counts,
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
            ELSE 'too_late_or_too_expensive'
        END AS reason
    FROM query_table(jobs) AS j
    CROSS JOIN main.gpus AS g
    LEFT JOIN _not_plans AS p ON p.job = j.job AND p.gpu_id = g.gpu_id
    LEFT JOIN _not_sold AS s ON s.job = j.job AND s.gpu_id = g.gpu_id
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
        ELSE 'what can be rented ends after the deadline, costs more than the budget, stops before the job '
            || 'is done, has too little host memory or a network that is too slow'
    END AS detail
FROM _not_reasons
ORDER BY job, rank NULLS LAST, gpu_id;
COMMENT ON MACRO TABLE why_not_for IS
    'Where each GPU is in the ranking of a job, and why some are not in it: job, gpu_id, rank (its best), total_usd, hours, reason (ranked, not_planned, does_not_fit, might_not_fit, fits_in_another_number, no_price, not_asked_for, not_offered_so, not_rented_in_that_number, too_late_or_too_expensive) and detail. jobs: rows of completed_jobs; plans: of job_plans; ranked: of cheapest_for.';

CREATE OR REPLACE MACRO cost_history(jobs, ranked) AS TABLE
WITH _history_prices AS (
    SELECT
        j.job, o.day, o.source, o.gpu_id, o.tier, o.price_kind, coalesce(o.term_days, 0) AS term_days,
        min(o.usd_per_gpu_hour)::DOUBLE AS usd_per_gpu_hour
    FROM query_table(jobs) AS j
    JOIN main.offers AS o
        ON list_contains(j.price_kinds, o.price_kind)
        AND is_wanted(o.country, j.countries, NULL) AND is_wanted(o.continent, j.continents, NULL)
    WHERE o.match_status = 'matched' AND o.gpu_count = floor(o.gpu_count) AND o.usd_per_gpu_hour IS NOT NULL
        AND o.flag_reason IS NULL AND coalesce(o.available, TRUE)
        AND coalesce(o.effective_from <= o.day, TRUE)
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
