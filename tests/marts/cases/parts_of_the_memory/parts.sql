WITH plans AS (
    SELECT job, gpu_id, peak_phase, COLUMNS(* EXCLUDE (job, gpu_id, peak_phase))::DOUBLE
    FROM needs
)

FROM memory_parts('plans')
