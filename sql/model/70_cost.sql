-- From seconds to dollars: how long a job rents its machines, what interruptions add, what the job costs.
-- Money is rounded half away from zero to a hundredth of a cent, term by term.

CREATE OR REPLACE MACRO price_kinds() AS ['on_demand', 'flex_start', 'spot', 'reserved', 'serverless'];
COMMENT ON FUNCTION price_kinds IS
    'Every price kind: on_demand, flex_start (starts when there is capacity, is not interrupted, limited in time), spot (may be interrupted), reserved (for a term), serverless (per second).';

CREATE OR REPLACE MACRO cost_parameters_by_source() AS TABLE
WITH _asked AS (
    SELECT s.source, k.price_kind
    FROM main.sources AS s
    CROSS JOIN (SELECT unnest(price_kinds()) AS price_kind) AS k
),

_applying AS (
    SELECT
        a.source, a.price_kind, c.name,
        arg_max(
            c.value,
            CASE
                WHEN c.applies_to LIKE 'source:%' THEN 3
                WHEN c.applies_to LIKE 'price_kind:%' THEN 2
                ELSE 1
            END
        ) AS value
    FROM _asked AS a
    JOIN main.cost_parameters AS c
        ON c.applies_to IN ('default', 'source:' || a.source, 'price_kind:' || a.price_kind)
    GROUP BY ALL
)

SELECT source, price_kind, map_from_entries(list((name, value) ORDER BY name)) AS parameters
FROM _applying
GROUP BY ALL;
COMMENT ON MACRO TABLE cost_parameters_by_source IS
    'The cost parameters that apply to each source and price kind, as a map from name to value: a row for the source counts before one for the price kind, and that before the default.';

CREATE OR REPLACE MACRO daly_interval(checkpoint_seconds, seconds_between_interruptions) AS
    CASE
        WHEN checkpoint_seconds >= 2 * seconds_between_interruptions THEN seconds_between_interruptions
        ELSE sqrt(2 * checkpoint_seconds * seconds_between_interruptions)
            * (
                1 + sqrt(checkpoint_seconds / (2 * seconds_between_interruptions)) / 3
                + checkpoint_seconds / (2 * seconds_between_interruptions) / 9
            )
            - checkpoint_seconds
    END;
COMMENT ON FUNCTION daly_interval IS
    'Seconds of work between two checkpoints that minimize the expected loss, for a checkpoint that takes checkpoint_seconds and an interruption every seconds_between_interruptions on average. J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22 (2006), eq. 37; its first term is Young''s (CACM 17, 1974).';

CREATE OR REPLACE MACRO daly_expected_seconds(
    work_seconds, interval_seconds, checkpoint_seconds, restart_seconds, seconds_between_interruptions
) AS
    seconds_between_interruptions * exp(restart_seconds / seconds_between_interruptions)
        * (exp((interval_seconds + checkpoint_seconds) / seconds_between_interruptions) - 1)
        * work_seconds / interval_seconds;
COMMENT ON FUNCTION daly_expected_seconds IS
    'Expected paid seconds of a job of work_seconds that is checkpointed every interval_seconds and interrupted at random every seconds_between_interruptions on average, checkpoints, lost work and restarts included. Daly (2006), eq. 20.';

CREATE OR REPLACE MACRO cost_of(cases) AS TABLE
WITH _cost_template AS (
    SELECT
        NULL::DOUBLE AS tokens, NULL::DOUBLE AS epochs, NULL::DOUBLE AS tokens_per_second,
        NULL::DOUBLE AS training_state_gib, NULL::DOUBLE AS result_gib, NULL::DOUBLE AS model_download_gib,
        NULL::INTEGER AS node_count, NULL::VARCHAR AS price_kind, NULL::INTEGER AS term_days,
        NULL::DECIMAL(18, 8) AS usd_per_hour, NULL::DECIMAL(18, 8) AS host_usd_per_hour,
        NULL::INTEGER AS billing_increment_seconds, NULL::INTEGER AS minimum_seconds,
        NULL::DECIMAL(18, 8) AS storage_usd_per_gb_month, NULL::DECIMAL(18, 8) AS egress_usd_per_gb,
        NULL::DECIMAL(18, 8) AS download_usd_per_gb, NULL::DOUBLE AS local_disk_gb,
        NULL::DOUBLE AS setup_seconds, NULL::DOUBLE AS image_gb, NULL::DOUBLE AS download_gb_per_second,
        NULL::DOUBLE AS evaluation_share, NULL::DOUBLE AS dataset_bytes_per_token,
        NULL::DOUBLE AS checkpoints_kept,
        NULL::DOUBLE AS checkpoint_pause_seconds, NULL::DOUBLE AS checkpoint_gb_per_second,
        NULL::DOUBLE AS hours_between_interruptions, NULL::DOUBLE AS interruption_wait_seconds,
        NULL::DOUBLE AS capacity_wait_hours, NULL::DOUBLE AS hours_per_month
    WHERE FALSE
),

_cost_given AS (
    FROM _cost_template
    UNION ALL BY NAME
    FROM query_table(cases)
),

_cost_defaults AS (
    SELECT map_from_entries(list((name, value) ORDER BY name)) AS p
    FROM main.cost_parameters
    WHERE applies_to = 'default'
),

_cost_cases AS (
    SELECT
        g.* REPLACE (
            coalesce(g.epochs, 1) AS epochs,
            coalesce(g.training_state_gib, 0) AS training_state_gib,
            coalesce(g.result_gib, 0) AS result_gib,
            coalesce(g.model_download_gib, 0) AS model_download_gib,
            coalesce(g.node_count, 1) AS node_count,
            coalesce(g.price_kind, 'on_demand') AS price_kind,
            coalesce(g.host_usd_per_hour, 0) AS host_usd_per_hour,
            coalesce(g.billing_increment_seconds, d.p['billing_increment_seconds'])::INTEGER
                AS billing_increment_seconds,
            coalesce(g.minimum_seconds, d.p['minimum_seconds'])::INTEGER AS minimum_seconds,
            coalesce(g.storage_usd_per_gb_month, d.p['storage_usd_per_gb_month'])::DECIMAL(18, 8)
                AS storage_usd_per_gb_month,
            coalesce(g.egress_usd_per_gb, d.p['egress_usd_per_gb'])::DECIMAL(18, 8) AS egress_usd_per_gb,
            coalesce(g.download_usd_per_gb, d.p['download_usd_per_gb'])::DECIMAL(18, 8)
                AS download_usd_per_gb,
            coalesce(g.local_disk_gb, 0) AS local_disk_gb,
            coalesce(g.setup_seconds, d.p['setup_seconds']) AS setup_seconds,
            coalesce(g.image_gb, d.p['image_gb']) AS image_gb,
            coalesce(g.download_gb_per_second, d.p['download_gbps'] / 8) AS download_gb_per_second,
            coalesce(g.evaluation_share, d.p['evaluation_share']) AS evaluation_share,
            coalesce(g.dataset_bytes_per_token, d.p['dataset_bytes_per_token']) AS dataset_bytes_per_token,
            coalesce(g.checkpoints_kept, d.p['checkpoints_kept']) AS checkpoints_kept,
            coalesce(g.checkpoint_pause_seconds, d.p['checkpoint_pause_seconds']) AS checkpoint_pause_seconds,
            coalesce(g.checkpoint_gb_per_second, d.p['checkpoint_gbps'] / 8) AS checkpoint_gb_per_second,
            CASE
                WHEN coalesce(g.price_kind, 'on_demand') = 'spot'
                    THEN coalesce(g.hours_between_interruptions, d.p['hours_between_interruptions'])
            END AS hours_between_interruptions,
            coalesce(g.interruption_wait_seconds, d.p['interruption_wait_seconds'])
                AS interruption_wait_seconds,
            CASE
                WHEN coalesce(g.price_kind, 'on_demand') = 'flex_start'
                    THEN coalesce(g.capacity_wait_hours, d.p['capacity_wait_hours'])
                ELSE 0e0
            END AS capacity_wait_hours,
            coalesce(g.hours_per_month, d.p['hours_per_month']) AS hours_per_month
        )
    FROM _cost_given AS g
    CROSS JOIN _cost_defaults AS d
),

-- GiB are 1.073741824 GB.
_cost_sizes AS (
    SELECT
        *,
        image_gb + tokens / epochs * dataset_bytes_per_token / 1e9 + model_download_gib * 1.073741824e0
            AS _inbound_gb,
        training_state_gib * 1.073741824e0 AS _state_gb,
        result_gib * 1.073741824e0 AS _result_gb,
        tokens / tokens_per_second AS _train_seconds
    FROM _cost_cases
),

_cost_times AS (
    SELECT
        *,
        setup_seconds + _inbound_gb / download_gb_per_second AS _setup_seconds,
        _train_seconds * evaluation_share AS _evaluation_seconds,
        _train_seconds + _train_seconds * evaluation_share AS _work_seconds,
        checkpoint_pause_seconds + _state_gb / checkpoint_gb_per_second AS _checkpoint_seconds,
        setup_seconds + _inbound_gb / download_gb_per_second + _state_gb / checkpoint_gb_per_second
            AS _restart_seconds,
        hours_between_interruptions * 3600 / node_count AS _seconds_between_interruptions,
        _inbound_gb + checkpoints_kept * _state_gb + _result_gb AS _disk_gb
    FROM _cost_sizes
),

_cost_intervals AS (
    SELECT
        *,
        least(daly_interval(_checkpoint_seconds, _seconds_between_interruptions), _work_seconds)
            AS _interval_seconds,
        _setup_seconds + _work_seconds AS _used_seconds
    FROM _cost_times
),

_cost_expected AS (
    SELECT
        *,
        CASE WHEN _seconds_between_interruptions IS NULL THEN 0e0 ELSE
            daly_expected_seconds(
                _work_seconds, _interval_seconds, _checkpoint_seconds, _restart_seconds,
                _seconds_between_interruptions
            )
            - _work_seconds
        END AS _interruption_seconds,
        -- To the millisecond first, so that floating-point error does not turn exactly one hour into two.
        CASE WHEN _used_seconds IS NOT NULL THEN greatest(
            ceil(round(_used_seconds, 3) / billing_increment_seconds) * billing_increment_seconds,
            minimum_seconds
        ) END AS _billed_seconds
    FROM _cost_intervals
),

_cost_hours AS (
    SELECT
        *,
        _setup_seconds / 3600 AS setup_hours,
        _train_seconds / 3600 AS train_hours,
        _evaluation_seconds / 3600 AS evaluation_hours,
        _interruption_seconds / 3600 AS interruption_hours,
        coalesce((_work_seconds + _interruption_seconds) / _seconds_between_interruptions, 0)
            AS interruptions,
        CASE WHEN _seconds_between_interruptions IS NOT NULL THEN _interval_seconds / 60 END
            AS checkpoint_interval_minutes,
        _billed_seconds / 3600 AS billed_hours,
        -- A disk included in the price costs nothing, but its checkpoints are lost with the machine.
        CASE
            WHEN local_disk_gb < _disk_gb THEN _disk_gb
            WHEN _seconds_between_interruptions IS NOT NULL THEN checkpoints_kept * _state_gb + _result_gb
            ELSE 0e0
        END AS storage_gb
    FROM _cost_expected
),

_cost_waits AS (
    SELECT
        *,
        interruptions * interruption_wait_seconds / 3600 + capacity_wait_hours AS wait_hours,
        (_used_seconds + _interruption_seconds + interruptions * interruption_wait_seconds) / 3600
            AS _machine_hours
    FROM _cost_hours
),

_cost_money AS (
    SELECT
        *,
        (billed_hours * (usd_per_hour + host_usd_per_hour))::DECIMAL(18, 4) AS compute_usd,
        (interruption_hours * (usd_per_hour + host_usd_per_hour))::DECIMAL(18, 4) AS interruption_usd,
        _machine_hours + capacity_wait_hours AS hours,
        (storage_gb * storage_usd_per_gb_month * _machine_hours / hours_per_month)::DECIMAL(18, 4)
            AS storage_usd,
        (
            _result_gb * egress_usd_per_gb + _inbound_gb * (1 + interruptions) * download_usd_per_gb
        )::DECIMAL(18, 4) AS egress_usd,
        CASE WHEN price_kind = 'reserved' THEN (term_days * 24 * usd_per_hour)::DECIMAL(18, 4) END
            AS commitment_usd,
        (storage_gb * storage_usd_per_gb_month)::DECIMAL(18, 4) AS kept_volume_usd_per_month
    FROM _cost_waits
)

SELECT
    * EXCLUDE (
        _inbound_gb, _state_gb, _result_gb, _train_seconds, _setup_seconds, _evaluation_seconds,
        _work_seconds, _checkpoint_seconds, _restart_seconds, _seconds_between_interruptions, _disk_gb,
        _interval_seconds, _used_seconds,
        _interruption_seconds, _billed_seconds, _machine_hours
    ),
    (compute_usd + interruption_usd + storage_usd + egress_usd)::DECIMAL(18, 4) AS total_usd
FROM _cost_money;
COMMENT ON MACRO TABLE cost_of IS
    'Prices finished jobs. cases: a relation (name of a table or CTE) with tokens, tokens_per_second and usd_per_hour (of all that is rented); optional columns are those of rentals and plans, and what is left out takes its default from cost_parameters. Returns its columns with setup_hours, train_hours, evaluation_hours, interruption_hours, billed_hours, hours, compute_usd, interruption_usd, storage_usd, egress_usd, total_usd and more. Hours are billed in whole billing steps and at least the minimum; spot adds the expected loss at the best checkpoint interval (Daly 2006); a reserved price is charged for the job''s hours, with the whole term in commitment_usd.';
