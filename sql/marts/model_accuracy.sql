-- timeless: depends on the catalogue and the model, not on the day
WITH _fits AS (SELECT DISTINCT calibration FROM main.model_constants),

-- Every run, with the constants that answers use and with constants fitted without the run's family.
_jobs AS (
    SELECT r.*, f.calibration
    FROM main.measured_runs AS r
    JOIN main.measured_sources AS s ON s.source = r.source
    JOIN _fits AS f ON f.calibration IN ('all', 'without ' || s.family)
),

_predictions AS (
    SELECT run_id, calibration, 'memory' AS quantity, memory_gib AS predicted, memory_gib_low AS low,
        memory_gib_high AS high, fits, evidence
    FROM memory_of('_jobs', with_own := FALSE)
    UNION ALL BY NAME
    SELECT
        run_id, calibration, 'speed' AS quantity, tokens_per_second_per_gpu AS predicted,
        tokens_per_second_per_gpu_low AS low,
        tokens_per_second_per_gpu_high AS high, evidence
    FROM speed_of('_jobs', with_own := FALSE)
),

_by_run AS (
    SELECT
        run_id, quantity,
        any_value(predicted) FILTER (calibration = 'all') AS predicted,
        any_value(predicted) FILTER (calibration LIKE 'without %') AS predicted_held_out,
        any_value(low) FILTER (calibration LIKE 'without %') AS low_held_out,
        any_value(high) FILTER (calibration LIKE 'without %') AS high_held_out,
        any_value(fits) FILTER (calibration LIKE 'without %') AS fits_held_out,
        any_value(evidence) FILTER (calibration LIKE 'without %') AS evidence_held_out
    FROM _predictions
    GROUP BY run_id, quantity
)

SELECT
    p.quantity, r.run_id, r.source, s.family, r.tier, r.model, m.params_total / 1e9 AS params_billion,
    CASE WHEN m.params_total < 3e9 THEN 'below 3B' WHEN m.params_total < 15e9 THEN '3B to 15B'
        WHEN m.params_total < 50e9 THEN '15B to 50B' ELSE '50B and more' END AS model_size,
    r.gpu AS gpu_id, r.gpu_count, r.method, r.stack,
    CASE p.quantity WHEN 'memory' THEN r.measured_memory_gib ELSE r.measured_tokens_per_second_per_gpu END
        AS measured,
    p.predicted, p.predicted / measured - 1 AS error,
    p.predicted_held_out, p.predicted_held_out / measured - 1 AS error_held_out,
    p.low_held_out, p.high_held_out, measured BETWEEN p.low_held_out AND p.high_held_out AS in_band,
    p.evidence_held_out,
    CASE p.quantity WHEN 'memory' THEN r.out_of_memory = 1 END AS ran_out_of_memory,
    CASE p.quantity WHEN 'memory' THEN p.fits_held_out END AS predicted_to_fit
FROM _by_run AS p
JOIN main.measured_runs AS r USING (run_id)
JOIN main.measured_sources AS s ON s.source = r.source
JOIN main.models AS m ON m.model = r.model
WHERE measured IS NOT NULL OR (p.quantity = 'memory' AND r.out_of_memory = 1)
ORDER BY quantity, run_id
