-- From seconds to dollars: how long a job rents machines, what failures and interruptions add, and the cost.
-- Each term of the cost is rounded to a hundredth of a cent, half away from zero.

CREATE OR REPLACE MACRO price_kinds() AS ['on_demand', 'flex_start', 'spot', 'reserved', 'serverless'];
COMMENT ON FUNCTION price_kinds IS
    'All price kinds: on_demand, flex_start (the machine starts once there is capacity, is not interrupted, and runs for a limited time), spot (the machine may be interrupted), reserved (rented for a fixed term) and serverless (billed per second).';

CREATE OR REPLACE MACRO saving_kinds() AS ['reserved', 'flex_start', 'spot'];
COMMENT ON FUNCTION saving_kinds IS
    'The price kinds whose terms, queues and interruptions are taken to save money, so that their answers are compared with on demand.';

CREATE OR REPLACE MACRO tier_classes() AS ['dedicated', 'resold', 'community', 'marketplace', 'serverless'];
COMMENT ON FUNCTION tier_classes IS
    'All tier classes: dedicated (the provider''s own machines), resold (machines of other companies), community (private owners'' machines at the provider''s price), marketplace (machines whose owners set their own prices) and serverless.';

CREATE OR REPLACE MACRO cost_parameters_by_tier() AS TABLE
WITH _asked AS (
    SELECT s.source, k.price_kind, t.tier_class
    FROM main.sources AS s
    CROSS JOIN (SELECT unnest(price_kinds()) AS price_kind) AS k
    CROSS JOIN (SELECT unnest(tier_classes()) AS tier_class) AS t
),

_applying AS (
    SELECT
        a.source, a.price_kind, a.tier_class, c.name,
        arg_max(
            c.value,
            CASE
                WHEN c.applies_to LIKE 'source:%' THEN 4
                WHEN c.applies_to LIKE 'tier_class:%' THEN 3
                WHEN c.applies_to LIKE 'price_kind:%' THEN 2
                ELSE 1
            END
        ) AS value
    FROM _asked AS a
    JOIN main.cost_parameters AS c
        ON c.applies_to IN (
            'default', 'source:' || a.source, 'price_kind:' || a.price_kind, 'tier_class:' || a.tier_class
        )
    GROUP BY ALL
)

SELECT source, price_kind, tier_class, map_from_entries(list((name, value) ORDER BY name)) AS parameters
FROM _applying
GROUP BY ALL;
COMMENT ON MACRO TABLE cost_parameters_by_tier IS
    'The cost parameters that apply to each source, price kind and tier class, as a map from name to value. Rows for the source take precedence, then rows for the tier class, then rows for the price kind, and then the default.';

CREATE OR REPLACE MACRO cost_parameters_by_source() AS TABLE
SELECT source, price_kind, parameters
FROM cost_parameters_by_tier()
WHERE tier_class = 'dedicated';
COMMENT ON MACRO TABLE cost_parameters_by_source IS
    'cost_parameters_by_tier without the tier class, for parameters that do not depend on the tier class.';

CREATE OR REPLACE MACRO default_parameters() AS TABLE
SELECT map_from_entries(list((name, value) ORDER BY name)) AS p
FROM main.cost_parameters
WHERE applies_to = 'default';
COMMENT ON MACRO TABLE default_parameters IS
    'The default cost parameters, which apply if nothing more specific does, as a map from name to value.';

CREATE OR REPLACE MACRO run_parameters(parameters) AS {
    'download_gb_per_second': parameters['download_gbps'] / 8,
    'evaluation_share': parameters['evaluation_share'],
    'dataset_bytes_per_token': parameters['dataset_bytes_per_token'],
    'checkpoints_kept': parameters['checkpoints_kept'],
    'checkpoint_pause_seconds': parameters['checkpoint_pause_seconds'],
    'checkpoint_gb_per_second': parameters['checkpoint_gbps'] / 8,
    'notice_seconds': parameters['notice_seconds'],
    'interruption_wait_seconds': parameters['interruption_wait_seconds'],
    'further_machine_wait_seconds': parameters['further_machine_wait_seconds'],
    'hours_per_month': parameters['hours_per_month']
};
COMMENT ON FUNCTION run_parameters IS
    'The columns of cost_of that offers do not state and that are the same for all machines of a source, as a struct built from a map of cost parameters.';

CREATE OR REPLACE MACRO cost_terms(cases) AS TABLE
-- A GiB is 1.073741824 GB.
WITH _cost_sizes AS (
    SELECT
        *,
        image_gb + tokens / epochs * dataset_bytes_per_token / 1e9 + model_download_gib * 1.073741824e0
            AS _inbound_gb,
        training_state_gib * 1.073741824e0 AS _state_gb,
        result_gib * 1.073741824e0 AS _result_gb,
        tokens / tokens_per_second AS _train_seconds
    FROM query_table(cases)
),

_cost_times AS (
    SELECT
        *,
        _inbound_gb / download_gb_per_second AS _download_seconds,
        _train_seconds * evaluation_share AS _evaluation_seconds,
        _train_seconds + _train_seconds * evaluation_share AS _work_seconds,
        _state_gb / checkpoint_gb_per_second AS _load_seconds,
        checkpoint_pause_seconds + _state_gb / checkpoint_gb_per_second AS checkpoint_seconds,
        _inbound_gb + checkpoints_kept * _state_gb + _result_gb AS _disk_gb,
        -- The job stops as soon as one of its machines stops.
        node_count / (hours_between_failures * 3600) AS _failures_per_second,
        coalesce(node_count / (hours_between_interruptions * 3600), 0) AS _reclaims_per_second
    FROM _cost_sizes
),

-- A local disk is lost with its machine; a disk that outlives its machine saves the next download.
_cost_disks AS (
    SELECT
        *,
        setup_seconds + _download_seconds AS _setup_seconds,
        local_disk_gb >= _disk_gb AS _is_local,
        CASE WHEN persistent_disk AND disk_outlives_host AND NOT _is_local THEN 0 ELSE 1 END
            AS _downloads_per_failure,
        CASE WHEN persistent_disk AND NOT _is_local THEN 0 ELSE 1 END AS _downloads_per_reclaim
    FROM _cost_times
),

-- If a notice is long enough for a checkpoint, no work is lost; other reclaims lose work, as failures do.
_cost_stops AS (
    SELECT
        *,
        setup_seconds + _downloads_per_failure * _download_seconds + _load_seconds
            AS failure_restart_seconds,
        setup_seconds + _downloads_per_reclaim * _download_seconds + _load_seconds
            AS reclaim_restart_seconds,
        CASE WHEN notice_seconds >= checkpoint_seconds THEN _reclaims_per_second ELSE 0 END
            AS _noticed_per_second,
        _failures_per_second
        + CASE WHEN notice_seconds >= checkpoint_seconds THEN 0 ELSE _reclaims_per_second END
            AS _sudden_per_second
    FROM _cost_disks
),

-- Each interval is computed only once, because it is used several times below.
_cost_intervals AS (
    SELECT
        *,
        best_interval(_work_seconds, checkpoint_seconds, _failures_per_second) AS _failure_interval,
        best_interval(_work_seconds, checkpoint_seconds, _sudden_per_second) AS _sudden_interval
    FROM _cost_stops
),

_cost_failing AS (
    SELECT
        *,
        run_seconds_at(
            _work_seconds, _failure_interval, checkpoint_seconds, failure_restart_seconds,
            _failures_per_second
        ) AS _failing_seconds
    FROM _cost_intervals
),

_cost_runs AS (
    SELECT
        *,
        -- A reclaim with notice costs a checkpoint and a restart, during which another reclaim may come.
        CASE
            WHEN _noticed_per_second = _reclaims_per_second THEN _failing_seconds
            ELSE run_seconds_at(
                _work_seconds,
                _sudden_interval,
                checkpoint_seconds,
                (
                    _failures_per_second * failure_restart_seconds
                    + _reclaims_per_second * reclaim_restart_seconds
                ) / _sudden_per_second,
                _sudden_per_second
            )
        END * exp(_noticed_per_second * (checkpoint_seconds + reclaim_restart_seconds)) AS _running_seconds
    FROM _cost_failing
),

_cost_hours AS (
    SELECT
        *,
        _setup_seconds / 3600 AS setup_hours,
        _train_seconds / 3600 AS train_hours,
        _evaluation_seconds / 3600 AS evaluation_hours,
        -- Failures are counted first, without reclaims; interruption_hours is what reclaims add to them.
        (_failing_seconds - _work_seconds) / 3600 AS failure_hours,
        (_running_seconds - _failing_seconds) / 3600 AS interruption_hours,
        _running_seconds * _failures_per_second AS failures,
        _running_seconds * _reclaims_per_second AS interruptions,
        CASE
            WHEN _sudden_per_second > 0 THEN _sudden_interval / 60
        END AS checkpoint_interval_minutes,
        -- A disk included in the price is free but is lost with its machine: checkpoints need a paid disk.
        CASE
            WHEN NOT _is_local THEN _disk_gb
            WHEN _failures_per_second + _reclaims_per_second > 0
                THEN checkpoints_kept * _state_gb + _result_gb
            ELSE 0e0
        END AS storage_gb
    FROM _cost_runs
),

-- The machines of a job start again together.
_cost_waits AS (
    SELECT
        *,
        (failures + interruptions)
        * (interruption_wait_seconds + (node_count - 1) * further_machine_wait_seconds) / 3600
            AS _restart_wait_hours,
        _restart_wait_hours + capacity_wait_hours AS wait_hours,
        (_setup_seconds + _running_seconds) / 3600 + _restart_wait_hours AS _machine_hours,
        _machine_hours + capacity_wait_hours AS hours
    FROM _cost_hours
),

-- A reservation is billed in whole terms, as many as the job takes. Time is rounded to the millisecond first,
-- so that floating-point error does not turn exactly one hour into two.
_cost_billed AS (
    SELECT
        *,
        CASE
            WHEN price_kind = 'reserved'
                THEN ceil(round(hours * 3600, 3) / (term_days * 86400)) * term_days * 24
            WHEN _work_seconds IS NOT NULL THEN greatest(
                ceil(round(_setup_seconds + _work_seconds, 3) / billing_increment_seconds)
                * billing_increment_seconds,
                minimum_seconds
            ) / 3600
        END AS billed_hours,
        -- Time lost within a paid term costs nothing extra.
        CASE WHEN price_kind = 'reserved' THEN 0 ELSE usd_per_hour + host_usd_per_hour END
            AS _usd_per_lost_hour
    FROM _cost_waits
),

_cost_money AS (
    SELECT
        *,
        (billed_hours * (usd_per_hour + host_usd_per_hour))::DECIMAL(18, 4) AS compute_usd,
        (interruption_hours * _usd_per_lost_hour)::DECIMAL(18, 4) AS interruption_usd,
        (failure_hours * _usd_per_lost_hour)::DECIMAL(18, 4) AS failure_usd,
        (storage_gb * storage_usd_per_gb_month * _machine_hours / hours_per_month)::DECIMAL(18, 4)
            AS storage_usd,
        (
            _result_gb * egress_usd_per_gb
            + _inbound_gb
            * (1 + failures * _downloads_per_failure + interruptions * _downloads_per_reclaim)
            * download_usd_per_gb
        )::DECIMAL(18, 4) AS egress_usd,
        CASE WHEN price_kind = 'reserved' THEN (term_days * 24 * usd_per_hour)::DECIMAL(18, 4) END
            AS commitment_usd,
        -- Every started hour counts as used.
        gpu_count * least(
            1e0, ceil(round(
                CASE
                    WHEN price_kind = 'reserved' THEN hours
                    ELSE (_setup_seconds + _work_seconds) / 3600
                END, 6
            )) / billed_hours
        ) / gpus_billed AS share_used,
        (storage_gb * storage_usd_per_gb_month)::DECIMAL(18, 4) AS kept_volume_usd_per_month
    FROM _cost_billed
)

SELECT
    * EXCLUDE (
        _inbound_gb, _state_gb, _result_gb, _disk_gb, _train_seconds, _evaluation_seconds, _work_seconds,
        _download_seconds, _setup_seconds, _load_seconds, _failures_per_second, _reclaims_per_second,
        _noticed_per_second, _sudden_per_second, _is_local, _downloads_per_failure, _downloads_per_reclaim,
        _failing_seconds, _running_seconds, _restart_wait_hours, _machine_hours, _usd_per_lost_hour,
        _failure_interval, _sudden_interval
    ),
    (compute_usd + interruption_usd + failure_usd + storage_usd + egress_usd)::DECIMAL(18, 4) AS total_usd
FROM _cost_money;
COMMENT ON MACRO TABLE cost_terms IS
    'The formulas behind cost_of. cases: a relation that contains every column of cost_of. Returns the columns of cases, plus the hours and costs term by term.';

CREATE OR REPLACE MACRO cost_of(cases) AS TABLE
WITH _cost_given AS (
    SELECT *, row_number() OVER () AS _cost_case, 1 AS _cost_place
    FROM query_table(cases)
),

_cost_defaults AS (
    SELECT
        c._cost_case, 2 AS _cost_place,
        NULL::DOUBLE AS tokens, 1e0 AS epochs, NULL::DOUBLE AS tokens_per_second, 0e0 AS training_state_gib,
        0e0 AS result_gib, 0e0 AS model_download_gib, 1 AS gpu_count, 1 AS node_count,
        NULL::INTEGER AS gpus_billed,
        'on_demand' AS price_kind, NULL::INTEGER AS term_days,
        NULL::DECIMAL(18, 8) AS usd_per_hour, 0::DECIMAL(18, 8) AS host_usd_per_hour,
        d.p['billing_increment_seconds'] AS billing_increment_seconds,
        d.p['minimum_seconds'] AS minimum_seconds,
        d.p['storage_usd_per_gb_month'] AS storage_usd_per_gb_month,
        d.p['egress_usd_per_gb'] AS egress_usd_per_gb, d.p['download_usd_per_gb'] AS download_usd_per_gb,
        0e0 AS local_disk_gb, d.p['setup_seconds'] AS setup_seconds, d.p['image_gb'] AS image_gb,
        unnest(run_parameters(d.p)), NULL::DOUBLE AS hours_between_failures,
        d.p['hours_between_interruptions'] AS hours_between_interruptions,
        d.p['capacity_wait_hours'] AS capacity_wait_hours,
        FALSE AS persistent_disk, FALSE AS disk_outlives_host,
        d.p['gpu_hours_between_failures'] AS _cost_gpu_hours,
        d.p['host_hours_between_failures'] AS _cost_host_hours
    FROM _cost_given AS c
    CROSS JOIN default_parameters() AS d
),

_cost_filled AS (
    -- The first non-null value of each column: the one given in the case, otherwise the default.
    SELECT any_value(COLUMNS(* EXCLUDE (_cost_place)) ORDER BY _cost_place)
    FROM (FROM _cost_given UNION ALL BY NAME FROM _cost_defaults)
    GROUP BY _cost_case
    ORDER BY _cost_case
),

_cost_cases AS (
    SELECT * EXCLUDE (_cost_case, _cost_gpu_hours, _cost_host_hours) REPLACE (
        billing_increment_seconds::INTEGER AS billing_increment_seconds,
        minimum_seconds::INTEGER AS minimum_seconds,
        storage_usd_per_gb_month::DECIMAL(18, 8) AS storage_usd_per_gb_month,
        egress_usd_per_gb::DECIMAL(18, 8) AS egress_usd_per_gb,
        download_usd_per_gb::DECIMAL(18, 8) AS download_usd_per_gb,
        coalesce(gpus_billed, gpu_count) AS gpus_billed,
        coalesce(
            hours_between_failures,
            hours_between_machine_failures(gpu_count / node_count, _cost_gpu_hours, _cost_host_hours)
        ) AS hours_between_failures,
        CASE WHEN price_kind = 'spot' THEN hours_between_interruptions END AS hours_between_interruptions,
        CASE WHEN price_kind = 'flex_start' THEN capacity_wait_hours ELSE 0e0 END AS capacity_wait_hours
    )
    FROM _cost_filled
)

FROM cost_terms('_cost_cases');
COMMENT ON MACRO TABLE cost_of IS
    'Computes what it costs to finish each job. cases: the name of a table or CTE with the columns tokens, tokens_per_second and usd_per_hour (for everything rented); the optional columns are those of rentals and plans, and missing columns get their defaults from cost_parameters. Returns the columns of cases, plus setup_hours, train_hours, evaluation_hours, failure_hours, interruption_hours, billed_hours, hours, compute_usd, interruption_usd, failure_usd, storage_usd, egress_usd, total_usd and more. Hours are billed in whole billing steps, subject to the minimum; a reservation is billed in whole terms of term_days. Machine failures and spot reclaims each add their expected loss at the best checkpoint interval (Daly 2006); reclaims whose notice suffices for a checkpoint lose no work, and multiply the hours by exp(rate x (checkpoint + restart)).';
