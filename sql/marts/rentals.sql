WITH _counts AS (
    SELECT unnest(planned_counts())::INTEGER AS gpu_count
),

_ranked AS (
    SELECT * FROM main.offers_latest WHERE ranked
),

_sizes AS (
    SELECT * FROM catalogued_sizes('_ranked')
),

_offers AS (
    SELECT
        o.* EXCLUDE (node_network_gbps, max_nodes)
            RENAME (
                gpu_count AS offer_gpus, usd_per_hour AS offer_usd_per_hour, size_evidence AS offer_evidence
            ),
        o.node_network_gbps AS offer_network_gbps,
        o.max_nodes AS offer_max_nodes,
        -- Only a price per GPU can apply several times to one machine; a named machine is rented whole.
        o.gpu_count = 1 AND (o.gpu_counts IS NOT NULL OR o.size_evidence <> 'offered') AS by_the_gpu,
        z.size AS catalogued,
        coalesce(g.max_gpus_per_node, 1) AS card_gpus_per_host,
        g.memory_gb,
        g.derived_from,
        s.charged_while_stopped,
        s.persistent_disk,
        n.renter_notice,
        p.parameters AS p,
        coalesce(o.reliability, p.parameters['host_reliability']) AS up_share
    FROM _ranked AS o
    JOIN main.gpus AS g USING (gpu_id)
    JOIN main.sources AS s ON s.source = o.source
    JOIN cost_parameters_by_tier() AS p
        ON p.source = o.source AND p.price_kind = o.price_kind AND p.tier_class = o.tier_class
    LEFT JOIN main.countries AS n ON n.country = o.country
    LEFT JOIN _sizes AS z
        ON z.source = o.source AND z.gpu_id = o.gpu_id AND z.tier IS NOT DISTINCT FROM o.tier
),

_sold AS (
    SELECT
        *,
        -- The numbers of GPUs with which the machine is sold.
        CASE
            WHEN NOT by_the_gpu THEN [offer_gpus::INTEGER]
            WHEN gpu_counts IS NOT NULL THEN gpu_counts
            WHEN offer_evidence = 'catalogued' THEN catalogued.gpu_counts
            ELSE list_transform(
                generate_series(1, least(p['gpus_per_host'], card_gpus_per_host)::INTEGER),
                lambda n: n::INTEGER
            )
        END AS sold
    FROM _offers
),

_hosts AS (
    SELECT
        *,
        -- An offer of more GPUs than one machine can hold is a cluster.
        least(list_max(sold), card_gpus_per_host)::INTEGER AS gpus_per_host,
        -- All outages are assumed to be equally long, so the lower a host's uptime, the more often the host
        -- fails; no host is assumed to be better than a host in a data centre.
        CASE
            WHEN up_share < 1
                THEN least(
                    p['host_outage_hours'] * up_share / (1 - up_share), p['host_hours_between_failures']
                )
            ELSE p['host_hours_between_failures']
        END AS host_hours,
        -- machine_sizes states the largest machine's network; smaller machines have a slower network or none.
        offer_network_gbps IS NULL AND catalogued.node_network_gbps IS NOT NULL
            AND gpus_per_host = list_max(catalogued.gpu_counts) AS network_catalogued,
        CASE WHEN network_catalogued THEN catalogued.node_network_gbps ELSE offer_network_gbps END
            AS node_network_gbps,
        -- If an offer states its network but no limit, any number of machines can be joined.
        coalesce(
            offer_max_nodes,
            CASE WHEN network_catalogued THEN catalogued.max_nodes ELSE list_max(planned_counts()) END
        ) AS max_nodes
    FROM _sold
),

_served AS (
    SELECT
        h.*,
        c.gpu_count,
        CASE WHEN c.gpu_count <= h.gpus_per_host THEN 1 ELSE c.gpu_count // h.gpus_per_host END::INTEGER
            AS node_count,
        greatest(c.gpu_count, coalesce(h.min_gpu_count, 1)) AS gpus_wanted
    FROM _hosts AS h
    JOIN _counts AS c
        ON c.gpu_count <= h.gpus_per_host
        -- Machines are joined only if their network is known. A marketplace offer is one machine.
        OR (
            c.gpu_count % h.gpus_per_host = 0 AND h.gpus_per_host > 1
            AND h.node_network_gbps IS NOT NULL AND h.tier_class <> 'marketplace'
            AND (c.gpu_count <= h.offer_gpus OR c.gpu_count // h.gpus_per_host <= h.max_nodes)
        )
),

_billed AS (
    SELECT
        *,
        -- The GPUs of the smallest machine with at least gpus_wanted, or of as many of the largest as needed.
        CASE
            WHEN gpus_wanted <= list_max(sold) THEN list_min(list_filter(sold, lambda n: n >= gpus_wanted))
            ELSE ceil(gpus_wanted / list_max(sold)) * list_max(sold)
        END::INTEGER AS gpus_billed,
        (gpus_billed / offer_gpus)::INTEGER AS units
    FROM _served
),

_charged AS (
    SELECT
        *,
        CASE
            WHEN node_count > 1 AND network_catalogued AND offer_evidence = 'offered' THEN 'catalogued'
            ELSE offer_evidence
        END AS size_evidence,
        (offer_usd_per_hour * units)::DECIMAL(18, 8) AS usd_per_hour,
        (units * offer_gpus * (
            p['host_cores_per_gpu'] * p['host_usd_per_core_hour']
            + p['host_ram_gib_per_gpu'] * p['host_usd_per_gib_hour']
        ))::DECIMAL(18, 8) AS host_usd_per_hour
    FROM _billed
),

_terms AS (
    SELECT
        gpu_id, gpu_count, node_count, gpus_billed, size_evidence, price_kind, term_days, available,
        source, provider, tier, tier_class, region, country, renter_notice, continent, instance_type,
        raw_label, usd_per_hour, host_usd_per_hour,
        coalesce(billing_increment_seconds, p['billing_increment_seconds'])::INTEGER
            AS billing_increment_seconds,
        coalesce(minimum_seconds, p['minimum_seconds'])::INTEGER AS minimum_seconds,
        max_run_hours,
        coalesce(storage_usd_per_gb_month, p['storage_usd_per_gb_month'])::DECIMAL(18, 8)
            AS storage_usd_per_gb_month,
        coalesce(egress_usd_per_gb, p['egress_usd_per_gb'])::DECIMAL(18, 8) AS egress_usd_per_gb,
        coalesce(
            download_usd_per_gb,
            p['download_usd_per_gb']
            + p['download_per_egress_price'] * coalesce(egress_usd_per_gb, p['egress_usd_per_gb'])
        )::DECIMAL(18, 8) AS download_usd_per_gb,
        coalesce(local_disk_gb, 0) * p['local_disk_in_price'] AS local_disk_gb,
        node_network_gbps,
        vcpus * units AS vcpus,
        ram_gib * units AS ram_gib,
        coalesce(ram_gib, p['host_ram_gib_per_gpu_gb'] * memory_gb * offer_gpus) * units AS host_ram_gib,
        p['setup_seconds'] AS setup_seconds,
        p['image_gb'] AS image_gb,
        unnest(run_parameters(p)),
        hours_between_machine_failures(
            gpu_count / node_count, p['gpu_hours_between_failures'], host_hours
        ) AS hours_between_failures,
        CASE WHEN price_kind = 'spot' THEN p['hours_between_interruptions'] END
            AS hours_between_interruptions,
        CASE WHEN price_kind = 'spot' THEN p['bid_exponent'] ELSE 0 END AS bid_exponent,
        CASE WHEN price_kind = 'flex_start' THEN p['capacity_wait_hours'] END AS capacity_wait_hours,
        -- A persistent disk outlives its host in a data centre, but is lost with its host on a marketplace.
        coalesce(persistent_disk, FALSE) AS persistent_disk,
        tier_class <> 'marketplace' AS disk_outlives_host,
        json_object_of(concat_ws(',',
            assumed(
                TRUE, 'billing_increment_seconds', billing_increment_seconds,
                p['billing_increment_seconds']::INTEGER
            ),
            assumed(
                TRUE, 'storage_usd_per_gb_month', storage_usd_per_gb_month, p['storage_usd_per_gb_month']
            ),
            assumed(
                local_disk_gb > 0 AND p['local_disk_in_price'] = 0, 'has_disk_in_price', NULL, FALSE
            ),
            assumed(TRUE, 'egress_usd_per_gb', egress_usd_per_gb, p['egress_usd_per_gb']),
            assumed(
                isfinite(hours_between_failures), 'hours_between_failures', reliability,
                round(hours_between_failures)::BIGINT
            ),
            assumed(
                price_kind = 'spot', 'hours_between_interruptions', NULL, p['hours_between_interruptions']
            ),
            assumed(price_kind = 'flex_start', 'capacity_wait_hours', NULL, p['capacity_wait_hours']),
            assumed(price_kind = 'spot' AND NOT persistent_disk, 'persistent_disk', NULL, FALSE),
            assumed(host_usd_per_hour > 0, 'host_cores_per_gpu', NULL, p['host_cores_per_gpu']),
            assumed(host_usd_per_hour > 0, 'host_ram_gib_per_gpu', NULL, p['host_ram_gib_per_gpu']),
            assumed(by_the_gpu AND gpus_billed > 1, 'gpus_priced_one_by_one', NULL, gpus_billed),
            assumed(size_evidence = 'assumed', 'gpus_per_machine', NULL, gpus_billed // node_count),
            assumed(node_count > 1 AND network_catalogued, 'node_network_gbps', NULL, node_network_gbps),
            assumed(
                vcpus * units < p['least_vcpus_per_gpu'] * gpu_count, 'few_vcpus_per_gpu', NULL,
                round(vcpus * units / gpu_count, 1)
            ),
            assumed(gpus_billed > gpu_count, 'idle_gpus', NULL, gpus_billed - gpu_count),
            json_member('form_factor_of', derived_from)
        )) AS assumptions,
        charged_while_stopped,
        doubt,
        coalesce(believed_on, day) AS price_day,
        native_price, native_currency, native_unit, fx_rate, fx_date, observed_at, source_url, capture_sha256
    FROM _charged
),

-- Within a group, everything that a job can ask for is the same, so dropping offers loses no answer.
_cheapest AS (
    SELECT *
    FROM _terms
    QUALIFY row_number() OVER (
        PARTITION BY
            gpu_id, gpu_count, node_count, size_evidence, price_kind, term_days,
            source, provider, tier, tier_class, country, continent, available, price_day,
            billing_increment_seconds, minimum_seconds, max_run_hours,
            storage_usd_per_gb_month, egress_usd_per_gb, download_usd_per_gb, local_disk_gb,
            node_network_gbps, ram_gib IS NULL, host_ram_gib, hours_between_failures
        ORDER BY
            usd_per_hour + host_usd_per_hour, gpus_billed, region NULLS LAST, instance_type NULLS LAST,
            raw_label, observed_at DESC, source_url, capture_sha256, native_price, native_unit
    ) = 1
)

SELECT
    *,
    -- True if another rental, with the same terms except for provider and place, comes first in this order.
    row_number() OVER (
        PARTITION BY
            gpu_id, gpu_count, node_count, size_evidence, price_kind, term_days,
            source, tier, tier_class, renter_notice, available, price_day,
            billing_increment_seconds, minimum_seconds, max_run_hours,
            storage_usd_per_gb_month, egress_usd_per_gb, download_usd_per_gb, local_disk_gb,
            node_network_gbps, ram_gib IS NULL, host_ram_gib, hours_between_failures
        ORDER BY
            usd_per_hour + host_usd_per_hour, region, instance_type, raw_label, provider, source_url,
            capture_sha256, observed_at, usd_per_hour, gpus_billed
    ) > 1 AS is_undercut
FROM _cheapest
-- Ties in a ranking go to the row that comes first here.
ORDER BY
    gpu_id, gpu_count, source, tier, region, instance_type, raw_label, price_kind, term_days, node_count,
    provider, source_url, capture_sha256, observed_at, usd_per_hour, gpus_billed
