-- In which phase of the step did measured runs need the most memory?
SELECT
    CASE greatest(forward_gib, backward_gib, optimizer_step_gib)
        WHEN forward_gib THEN 'forward' WHEN backward_gib THEN 'backward' ELSE 'optimizer step'
    END AS phase,
    count(*) AS runs
FROM measured_phase_peaks
WHERE forward_gib IS NOT NULL
GROUP BY phase
ORDER BY runs DESC
