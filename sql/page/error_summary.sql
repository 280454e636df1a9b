SELECT
    a.quantity, a.grouped_by, a."group", s.title, a.runs, a.median_error_held_out, a.bias_held_out,
    a.share_in_band, a.stranger_median_error, a.stranger_share_in_band, a.sources, a.died,
    a.died_as_predicted, a.ran, a.ran_as_predicted
FROM main.model_accuracy_summary AS a
LEFT JOIN main.measured_sources AS s ON a.grouped_by = 'source' AND s.source = a."group"
WHERE a.grouped_by IN ('all', 'method', 'source')
ORDER BY a.quantity, a.grouped_by, a.runs DESC, a."group"
