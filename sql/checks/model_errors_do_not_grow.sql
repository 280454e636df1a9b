-- warn: a held-out error of the model is more than 10% above its last reviewed value
WITH _reviewed (quantity, runs, stranger_median, stranger_mean, held_out_median, held_out_mean) AS (
    -- Errors on runs, each estimated with constants fitted without that run's family. Reviewed 2026-11-29.
    VALUES ('memory', 1039, 0.0796, 0.0918, 0.0583, 0.083), ('speed', 1513, 0.1119, 0.1334, 0.0726, 0.1149)
)

FROM (
    SELECT r.quantity, unnest([
        {'average': 'stranger median', 'error': s.stranger_median_error, 'reviewed': r.stranger_median},
        {'average': 'stranger mean', 'error': s.stranger_mean_error, 'reviewed': r.stranger_mean},
        {'average': 'median', 'error': s.median_error_held_out, 'reviewed': r.held_out_median},
        {'average': 'mean', 'error': s.mean_error_held_out, 'reviewed': r.held_out_mean}
    ], recursive := TRUE)
    FROM _reviewed AS r
    JOIN main.model_accuracy_summary AS s
        ON s.quantity = r.quantity AND s.grouped_by = 'all' AND s.runs >= r.runs
)
WHERE error > 1.1 * reviewed
