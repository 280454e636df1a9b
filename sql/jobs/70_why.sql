-- The parts of a total, and the reason why a GPU is not the answer.

CREATE OR REPLACE MACRO why_total(ranked) AS TABLE
SELECT *
FROM (
    SELECT
        job, rank,
        unnest([
            {'place': 1, 'part': 'machine', 'usd': compute_usd},
            {'place': 2, 'part': 'interruptions', 'usd': interruption_usd},
            {'place': 3, 'part': 'failures', 'usd': failure_usd},
            {'place': 4, 'part': 'disk', 'usd': storage_usd},
            {'place': 5, 'part': 'data', 'usd': egress_usd},
            {'place': 6, 'part': 'total', 'usd': total_usd}
        ], recursive := TRUE)
    FROM query_table(ranked)
)
ORDER BY job, rank, place;
COMMENT ON MACRO TABLE why_total IS
    'The parts of an answer''s cost, in USD, and their sum: job, rank, place, part and usd. The hours and prices behind the parts are in the answer''s row of cheapest_for. ranked: rows of cheapest_for.';

CREATE OR REPLACE MACRO hits_all(names, lists) AS
    len(list_filter(lists, lambda each: NOT list_has_any(each, names))) = 0;
COMMENT ON FUNCTION hits_all IS 'True if each of the lists contains at least one of the names.';

CREATE OR REPLACE MACRO why_not_for(jobs, plans, ranked) AS TABLE
WITH _not_left AS (
    FROM query_table(plans)
    ANTI JOIN query_table(ranked) USING (job, gpu_id)
),

_not_candidates AS (
    FROM job_candidates(jobs, '_not_left')
),

_not_costs AS (
    FROM candidate_costs('_not_candidates', ['middle'])
),

_not_plans AS (
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
        bool_or(coalesce(list_contains(j.evidences, p.evidence), j.evidences IS NULL)) AS has_evidence,
        arg_max(p.infeasible_reason, p.gpu_count) AS infeasible_reason,
        min(p.usable_memory_gib - p.memory_margin_gib) AS needed_gib,
        any_value(p.usable_memory_gib) AS usable_memory_gib
    FROM query_table(jobs) AS j
    JOIN query_table(plans) AS p USING (job)
    GROUP BY j.job, p.gpu_id
),

_not_offers AS (
    SELECT
        j.job, r.gpu_id, r.gpu_count, r.node_count, r.node_network_gbps, r.ram_gib, r.host_ram_gib,
        list_transform(
            list_filter(
                list_concat(rental_misses(r, j), [
                    CASE WHEN r.node_count > j.max_nodes THEN miss('max_nodes', r.node_count) END,
                    CASE
                        WHEN NOT is_open_place(r.renter_notice, r.country, j.constraints)
                            THEN miss('sanctions', r.country)
                    END
                ]),
                lambda each: each IS NOT NULL
            ),
            lambda each: each.setting
        ) AS missed,
        len(missed) = 0 AS is_asked_for,
        {
            'usd': (r.usd_per_hour / r.gpus_billed)::DOUBLE,
            'provider': r.provider, 'price_kind': r.price_kind, 'country': r.country
        } AS offer
    FROM query_table(jobs) AS j
    CROSS JOIN main.rentals AS r
),

-- Offers that meet the constraints and have a number of GPUs that the job fits on, with the plan's needs.
_not_usable AS (
    SELECT
        o.job, o.gpu_id,
        coalesce(o.node_network_gbps, 0) AS network_gbps, coalesce(p.node_network_gbps, 0) AS planned_gbps,
        coalesce(o.ram_gib, o.host_ram_gib) / o.node_count AS host_gib,
        loaded_quantization(p.stack, m.experts, p.quantization) AS loaded_in,
        host_weights_gib(p.model_download_gib, loaded_in)
        + CASE WHEN coalesce(p.offload, '') = '' THEN 0 ELSE p.training_state_gib END AS planned_host_gib,
        has_host_memory(
            o.ram_gib, o.host_ram_gib, p.node_count, p.offload, p.training_state_gib, p.model_download_gib,
            loaded_in
        ) AS has_host_memory
    FROM _not_offers AS o
    JOIN _not_plans AS n ON n.job = o.job AND n.gpu_id = o.gpu_id AND list_contains(n.counts, o.gpu_count)
    JOIN query_table(plans) AS p
        ON p.job = o.job AND p.gpu_id = o.gpu_id AND p.gpu_count = o.gpu_count AND p.node_count = o.node_count
    JOIN main.models AS m ON m.model = p.model
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
        arg_min(o.offer, {'misses': len(o.missed), 'offer': o.offer}) AS cheapest,
        list(DISTINCT o.missed) AS missed
    FROM _not_offers AS o
    LEFT JOIN _not_plans AS p USING (job, gpu_id)
    GROUP BY o.job, o.gpu_id
),

-- The constraints that rule out all offers: each alone or, if none does, several together.
_not_ruled_out AS (
    SELECT
        job, gpu_id, list_sort(list_distinct(flatten(missed))) AS names,
        list_filter(list_transform(names, lambda name: [name]), lambda one: hits_all(one, missed)) AS alone,
        CASE
            WHEN len(alone) > 0 THEN alone
            -- Those that the others make superfluous are dropped.
            ELSE [list_reduce( -- noqa: LT01
                list_transform(names, lambda name: [name]),
                lambda kept, one: CASE
                    WHEN hits_all(list_filter(kept, lambda name: name <> one[1]), missed)
                        THEN list_filter(kept, lambda name: name <> one[1])
                    ELSE kept
                END,
                names
            )]
        END AS constraints
    FROM _not_sold
    WHERE NOT is_asked_for
),

-- The candidate that comes closest to being an answer.
_not_answers AS (
    SELECT
        job, gpu_id,
        arg_min({
            'reason': coalesce(refusal, 'too_late'), 'gpu_count': gpu_count, 'provider': provider,
            'total_usd': total_usd, 'hours': hours, 'share_used': share_used, 'interruptions': interruptions,
            'max_run_hours': max_run_hours, 'max_hours': max_hours
        }, {
            'refusal': refusal IS NOT NULL, 'total_usd': total_usd, 'hours': hours, 'offer': offer
        }) AS nearest
    FROM judged_costs('_not_costs', jobs)
    WHERE is_asked_kind
    GROUP BY job, gpu_id
),

_not_ranked AS (
    SELECT
        job, gpu_id, min(rank) AS rank,
        arg_min(gpu_count, rank) AS gpu_count, arg_min(provider, rank) AS provider,
        arg_min(total_usd, rank) AS total_usd, arg_min(hours, rank) AS hours
    FROM query_table(ranked)
    GROUP BY job, gpu_id
)

SELECT
    j.job, g.gpu_id, r.rank, r.total_usd, r.hours,
    CASE
        WHEN r.rank IS NOT NULL THEN 'ranked'
        WHEN p.job IS NULL THEN 'not_planned'
        WHEN NOT p.fits THEN 'does_not_fit'
        WHEN p.fits_from_gpus IS NULL THEN 'might_not_fit'
        WHEN p.counts IS NULL THEN 'fits_in_another_number'
        WHEN s.job IS NULL THEN 'no_price'
        WHEN NOT is_wanted(g.gpu_id, j.constraints.gpu_id) THEN 'not_asked_for'
        WHEN NOT s.is_asked_for THEN 'not_offered_so'
        WHEN NOT coalesce(s.is_sold_so, FALSE) THEN 'not_rented_in_that_number'
        WHEN NOT coalesce(h.has_network, TRUE) THEN 'network_too_slow'
        WHEN NOT coalesce(h.has_host_memory, TRUE) THEN 'host_memory_too_small'
        WHEN NOT coalesce(p.has_evidence, TRUE) THEN 'thin_evidence'
        ELSE coalesce(a.nearest.reason, 'not_rented_in_that_number')
    END AS reason,
    r.gpu_count, r.provider, p.infeasible_reason, p.needed_gib, p.usable_memory_gib, p.fit_probability,
    j.min_fit_probability, p.fits_from_gpus, j.max_gpus, p.counts, s.sold_counts, s.cheapest,
    o.constraints,
    list_transform(o.constraints, lambda names: list_transform(names, lambda name: CASE name
        WHEN 'kind' THEN array_to_string(j.price_kinds, ', ') ELSE j.asked[name]
    END)) AS asked,
    h.planned_gbps, h.network_gbps, h.planned_host_gib, h.host_gib,
    a.nearest
FROM query_table(jobs) AS j
CROSS JOIN main.gpus AS g
LEFT JOIN _not_plans AS p ON p.job = j.job AND p.gpu_id = g.gpu_id
LEFT JOIN _not_sold AS s ON s.job = j.job AND s.gpu_id = g.gpu_id
LEFT JOIN _not_ruled_out AS o ON o.job = j.job AND o.gpu_id = g.gpu_id
LEFT JOIN _not_hosts AS h ON h.job = j.job AND h.gpu_id = g.gpu_id
LEFT JOIN _not_answers AS a ON a.job = j.job AND a.gpu_id = g.gpu_id
LEFT JOIN _not_ranked AS r ON r.job = j.job AND r.gpu_id = g.gpu_id
ORDER BY j.job, r.rank NULLS LAST, g.gpu_id;
COMMENT ON MACRO TABLE why_not_for IS
    'The rank of each GPU for each job, or the reason why the GPU has no rank: job, gpu_id, rank (the GPU''s best), total_usd, hours, reason, and the facts behind the reason. Reasons: ranked, not_planned (the GPU''s specifications are incomplete), does_not_fit, might_not_fit, fits_in_another_number, no_price, not_asked_for, not_offered_so, not_rented_in_that_number, network_too_slow, host_memory_too_small, thin_evidence, too_late, and the refusals of judged_costs (too_expensive, stops_before_the_end, mostly_unused, interrupted_too_often). Facts about the fit: infeasible_reason (see plans), needed_gib and usable_memory_gib per GPU on the planned number of GPUs that comes closest, fit_probability (the highest), min_fit_probability (the one asked for), fits_from_gpus (the fewest GPUs on which the job fits), max_gpus (the most allowed), and counts (the numbers of GPUs on which the job fits). Facts about offers: gpu_count and provider of the best answer, sold_counts (the numbers of GPUs that can be rented), cheapest (usd per GPU-hour, provider, price_kind and country of the cheapest of the rentals that miss the fewest constraints), and, if all rentals miss one, constraints and asked: the constraints (columns of jobs, and sanctions: a country under sanctions that the job does not ask for) that rule out all rentals, as a list of sets, and their values as written in the job. Each rental misses a constraint of each set: the sets have one constraint each, or, if no single constraint rules out all rentals, there is one set of several. Facts about machines: planned_gbps and network_gbps (network bandwidth between machines, as planned and as offered), and planned_host_gib and host_gib (host memory per machine, as planned and as offered). Facts about answers: nearest (reason, gpu_count, provider, total_usd, hours, share_used, interruptions, max_run_hours and max_hours of the candidate that comes closest to being an answer). jobs: rows of completed_jobs; plans: rows of job_plans; ranked: rows of cheapest_for.';
