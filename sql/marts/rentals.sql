WITH _counts AS (
    SELECT unnest([1, 2, 4, 8, 16, 32, 64])::INTEGER AS gpu_count
),

_offers AS (
    SELECT
        o.* RENAME (gpu_count AS offer_gpus, usd_per_hour AS offer_usd_per_hour),
        -- A price per GPU can be taken several times on one machine. A named machine, or an offer on a
        -- marketplace, is rented whole.
        o.native_unit LIKE 'gpu_%' AND o.gpu_count = 1 AND o.instance_type IS NULL
            AND o.tier_class <> 'marketplace' AS by_the_gpu,
        coalesce(g.max_gpus_per_node, 1) AS card_gpus_per_host,
        g.memory_gb,
        g.derived_from,
        -- NVLink joins the GPUs of a machine, not machines; and an offer on a marketplace is one machine.
        (o.node_network_gbps IS NOT NULL OR o.interconnect NOT ILIKE '%nvlink%')
            AND o.tier_class <> 'marketplace' AS has_fabric,
        s.charged_while_stopped,
        s.persistent_disk,
        p.parameters AS p
    FROM main.offers_latest AS o
    JOIN main.gpus AS g USING (gpu_id)
    JOIN main.sources AS s ON s.source = o.source
    JOIN cost_parameters_by_source() AS p ON p.source = o.source AND p.price_kind = o.price_kind
    WHERE o.ranked
),

_hosts AS (
    SELECT
        *,
        -- An offer of more GPUs than one machine can have is a cluster.
        least(CASE WHEN by_the_gpu THEN p['gpus_per_host'] ELSE offer_gpus END, card_gpus_per_host)::INTEGER
            AS gpus_per_host
    FROM _offers
),

_served AS (
    SELECT
        h.*,
        c.gpu_count,
        CASE WHEN c.gpu_count <= h.gpus_per_host THEN 1 ELSE c.gpu_count // h.gpus_per_host END::INTEGER
            AS node_count
    FROM _hosts AS h
    JOIN _counts AS c
        ON c.gpu_count <= h.gpus_per_host
        OR (c.gpu_count % h.gpus_per_host = 0 AND h.gpus_per_host > 1 AND (
            c.gpu_count <= h.offer_gpus
            OR (h.has_fabric AND c.gpu_count // h.gpus_per_host <= coalesce(h.max_nodes, c.gpu_count))
        ))
),

_billed AS (
    SELECT
        *,
        -- Whole units of the offer: GPUs where it is sold by the GPU, otherwise machines or clusters.
        greatest(
            CASE WHEN by_the_gpu THEN gpu_count ELSE ceil(gpu_count / offer_gpus) END,
            ceil(coalesce(min_gpu_count, 1) / offer_gpus)
        )::INTEGER AS units
    FROM _served
),

_charged AS (
    SELECT
        *,
        (units * offer_gpus)::INTEGER AS gpus_billed,
        (offer_usd_per_hour * units)::DECIMAL(18, 8) AS usd_per_hour,
        (units * offer_gpus * (
            p['host_cores_per_gpu'] * p['host_usd_per_core_hour']
            + p['host_ram_gib_per_gpu'] * p['host_usd_per_gib_hour']
        ))::DECIMAL(18, 8) AS host_usd_per_hour
    FROM _billed
),

_terms AS (
    SELECT
        gpu_id, gpu_count, node_count, gpus_billed, price_kind, term_days,
        source, provider, tier, tier_class, region, country, continent, instance_type, raw_label,
        usd_per_hour, host_usd_per_hour,
        coalesce(billing_increment_seconds, p['billing_increment_seconds'])::INTEGER
            AS billing_increment_seconds,
        coalesce(minimum_seconds, p['minimum_seconds'])::INTEGER AS minimum_seconds,
        max_run_hours,
        coalesce(storage_usd_per_gb_month, p['storage_usd_per_gb_month'])::DECIMAL(18, 8)
            AS storage_usd_per_gb_month,
        coalesce(egress_usd_per_gb, p['egress_usd_per_gb'])::DECIMAL(18, 8) AS egress_usd_per_gb,
        (p['download_usd_per_gb']
            + p['download_per_egress_price'] * coalesce(egress_usd_per_gb, p['egress_usd_per_gb'])
        )::DECIMAL(18, 8) AS download_usd_per_gb,
        coalesce(local_disk_gb, 0) AS local_disk_gb,
        node_network_gbps,
        ram_gib * units AS ram_gib,
        coalesce(ram_gib, p['host_ram_gib_per_gpu_gb'] * memory_gb * offer_gpus) * units AS host_ram_gib,
        p['setup_seconds'] AS setup_seconds,
        p['image_gb'] AS image_gb,
        p['download_gbps'] / 8 AS download_gb_per_second,
        p['evaluation_share'] AS evaluation_share,
        p['dataset_bytes_per_token'] AS dataset_bytes_per_token,
        p['checkpoints_kept'] AS checkpoints_kept,
        p['checkpoint_pause_seconds'] AS checkpoint_pause_seconds,
        p['checkpoint_gbps'] / 8 AS checkpoint_gb_per_second,
        CASE WHEN price_kind = 'spot' THEN p['hours_between_interruptions'] END
            AS hours_between_interruptions,
        p['interruption_wait_seconds'] AS interruption_wait_seconds,
        CASE WHEN price_kind = 'flex_start' THEN p['capacity_wait_hours'] END AS capacity_wait_hours,
        p['hours_per_month'] AS hours_per_month,
        list_filter([
            CASE WHEN billing_increment_seconds IS NULL THEN
                'billing step of ' || p['billing_increment_seconds']::INTEGER || ' s' END,
            CASE WHEN storage_usd_per_gb_month IS NULL THEN
                'disk at ' || p['storage_usd_per_gb_month'] || ' USD per GB and month' END,
            CASE WHEN egress_usd_per_gb IS NULL THEN
                'egress at ' || p['egress_usd_per_gb'] || ' USD per GB' END,
            CASE WHEN price_kind = 'spot' THEN
                'an interruption every ' || p['hours_between_interruptions'] || ' hours' END,
            CASE WHEN price_kind = 'flex_start' THEN
                'a wait of ' || p['capacity_wait_hours'] || ' hours for capacity' END,
            CASE WHEN price_kind = 'spot' AND NOT persistent_disk THEN
                'checkpoints kept elsewhere, its disks are lost with the machine' END,
            CASE WHEN host_usd_per_hour > 0 THEN
                'host of ' || p['host_cores_per_gpu'] || ' cores and '
                || p['host_ram_gib_per_gpu'] || ' GiB per GPU' END,
            CASE WHEN by_the_gpu AND gpu_count > 1 THEN
                'price per GPU taken ' || gpu_count || ' times' END,
            CASE WHEN gpus_billed > gpu_count THEN
                (gpus_billed - gpu_count) || ' idle GPUs paid' END,
            CASE WHEN derived_from IS NOT NULL THEN
                'form factor not stated, planned as ' || derived_from END
        ], lambda text: text IS NOT NULL) AS assumptions,
        charged_while_stopped,
        day AS price_day,
        native_price, native_currency, native_unit, fx_rate, fx_date, observed_at, source_url, capture_sha256
    FROM _charged
)

SELECT *
FROM _terms
QUALIFY row_number() OVER (
    PARTITION BY
        gpu_id, gpu_count, node_count, price_kind, term_days, source, tier,
        billing_increment_seconds, minimum_seconds, max_run_hours,
        storage_usd_per_gb_month, egress_usd_per_gb, local_disk_gb,
        node_network_gbps, ram_gib
    ORDER BY
        usd_per_hour + host_usd_per_hour, gpus_billed, region NULLS LAST, instance_type NULLS LAST, raw_label,
        observed_at DESC, source_url, capture_sha256, provider, native_price, native_unit
) = 1
ORDER BY
    gpu_id, gpu_count, node_count, price_kind, usd_per_hour, source, tier, region, instance_type, raw_label
