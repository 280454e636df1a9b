WITH defaults AS (
    SELECT 0.25e9 AS tokens, 1000e0 AS tokens_per_second, 2.0 AS usd_per_hour
),

large AS (
    SELECT
        1e9 AS tokens, 2e0 AS epochs, 4000e0 AS tokens_per_second, 16.0 AS usd_per_hour,
        20e0 AS training_state_gib, 3e0 AS result_gib, 15e0 AS model_download_gib,
        16 AS gpu_count, 2 AS node_count, 1.5 AS host_usd_per_hour
),

kinds AS (
    SELECT *, unnest(['on_demand', 'spot', 'flex_start', 'reserved']) AS price_kind, 30 AS term_days
    FROM large
),

disks AS (
    SELECT
        * REPLACE ('spot' AS price_kind), 'on_demand' = price_kind AS persistent_disk,
        FALSE AS disk_outlives_host, 64e0 AS local_disk_gb, 0e0 AS notice_seconds
    FROM kinds
    WHERE price_kind IN ('on_demand', 'spot')
),

lasting AS (
    SELECT
        * REPLACE (TRUE AS disk_outlives_host, unnest([0e0, 74.27, 74.28]) AS local_disk_gb),
        1800 AS billing_increment_seconds, 0 AS minimum_seconds
    FROM disks
    WHERE persistent_disk
),

given AS (
    SELECT 'as little as can be' AS name, *
    FROM defaults
    UNION ALL BY NAME
    SELECT 'kind' AS name, *
    FROM kinds
    UNION ALL BY NAME
    SELECT 'disk' AS name, *
    FROM disks
    UNION ALL BY NAME
    SELECT 'disk that lasts' AS name, *
    FROM lasting
    UNION ALL BY NAME
    SELECT
        'short' AS name, 1e6 AS tokens, 1000e0 AS tokens_per_second, 1.0 AS usd_per_hour,
        unnest([60, 7200]) AS minimum_seconds, 60 AS billing_increment_seconds,
        'infinity'::DOUBLE AS hours_between_failures
)

FROM cost_of('given')
