-- The rentals that a plan can use, in their order, which decides ties. Prices are in hundred-millionths of
-- a US dollar per hour.
SELECT
    r.rowid AS offer, r.gpu_id, r.gpu_count, r.node_count, r.gpus_billed, r.size_evidence, r.price_kind,
    r.term_days, r.available, r.source, r.provider, r.tier, coalesce(r.tier_class, 'dedicated') AS tier_class,
    r.region, r.country, r.renter_notice, r.continent, r.instance_type,
    round(r.usd_per_hour::DOUBLE * 1e8)::BIGINT AS usd8,
    round(r.host_usd_per_hour::DOUBLE * 1e8)::BIGINT AS host8,
    r.billing_increment_seconds, r.minimum_seconds, r.max_run_hours, r.storage_usd_per_gb_month,
    r.egress_usd_per_gb, r.download_usd_per_gb, r.local_disk_gb, r.ram_gib, r.setup_seconds, r.image_gb,
    r.download_gb_per_second, r.evaluation_share, r.dataset_bytes_per_token, r.checkpoints_kept,
    r.checkpoint_pause_seconds, r.checkpoint_gb_per_second,
    CASE WHEN isfinite(r.hours_between_failures) THEN r.hours_between_failures END AS hours_between_failures,
    r.hours_between_interruptions, r.bid_exponent, r.notice_seconds, r.interruption_wait_seconds,
    r.further_machine_wait_seconds, coalesce(r.capacity_wait_hours, 0) AS capacity_wait_hours,
    r.persistent_disk, r.disk_outlives_host, r.hours_per_month, r.is_undercut,
    r.doubt IS NOT NULL AS is_doubted, r.price_day, r.source_url,
    has_slow_links(r.gpu_count, r.node_count, g.nvlink_gb_s, g.nvlink_topology) AS has_slow_links
FROM main.rentals AS r
JOIN main.gpus AS g USING (gpu_id)
SEMI JOIN (
    SELECT DISTINCT gpu_id, gpu_count, node_count, coalesce(node_network_gbps, 0) AS planned_gbps
    FROM grid_plans()
) AS p
    ON p.gpu_id = r.gpu_id AND p.gpu_count = r.gpu_count AND p.node_count = r.node_count
    AND coalesce(r.node_network_gbps, 0) >= p.planned_gbps
ORDER BY r.rowid
