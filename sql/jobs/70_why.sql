-- Why a total is what it is, and why a GPU is not the answer.

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
            j.tier_classes, j.countries, j.excluded_countries, j.continents, j.max_term_days, j.max_age_days,
            j.assumed_sizes
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
