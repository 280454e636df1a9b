-- Traced and measured memory, a row per run and quantity: forward, backward or optimizer (the peak allocated
-- in that phase), allocated or reserved (over the step), or process (as the driver counts it). No constant is
-- fitted to these runs, except a process's context.
WITH _context AS (
    SELECT k.context_gib, k.context_multi_gpu_gib FROM constants() WHERE calibration = 'all'
),

_compared AS (
    SELECT
        run_id, unnest([
            {'quantity': 'forward', 'measured_gib': p.forward_gib, 'bytes': t.forward_allocated_bytes},
            {'quantity': 'backward', 'measured_gib': p.backward_gib, 'bytes': t.backward_allocated_bytes},
            {'quantity': 'optimizer', 'measured_gib': p.optimizer_step_gib,
                'bytes': t.optimizer_allocated_bytes},
            {'quantity': 'allocated', 'measured_gib': p.peak_allocated_gib, 'bytes': t.allocated_bytes},
            {'quantity': 'reserved', 'measured_gib': p.peak_reserved_gib, 'bytes': t.reserved_bytes}
        ], recursive := TRUE)
    FROM main.traced_runs AS t
    JOIN main.measured_phase_peaks AS p USING (run_id)
    UNION ALL BY NAME
    SELECT
        run_id, r.measured_memory_gib AS measured_gib,
        CASE r.memory_metric WHEN 'alloc' THEN 'allocated' WHEN 'smi' THEN 'process' ELSE r.memory_metric END
            AS quantity,
        CASE r.memory_metric WHEN 'alloc' THEN t.allocated_bytes ELSE t.reserved_bytes END AS bytes
    FROM main.traced_runs AS t
    JOIN main.measured_runs AS r USING (run_id)
)

SELECT
    run_id, r.source, t.recipe, t.is_identified, r.model, r.gpu AS gpu_id, c.quantity, c.measured_gib,
    gib(c.bytes) + CASE
        WHEN c.quantity <> 'process' THEN 0e0
        WHEN r.gpu_count > 1 THEN context_gib + context_multi_gpu_gib
        ELSE context_gib
    END AS traced_gib,
    traced_gib / c.measured_gib - 1 AS error
FROM _compared AS c
JOIN main.traced_runs AS t USING (run_id)
JOIN main.measured_runs AS r USING (run_id)
CROSS JOIN _context
WHERE c.measured_gib IS NOT NULL AND c.bytes IS NOT NULL
ORDER BY r.source, run_id, c.quantity
