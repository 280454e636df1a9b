WITH plans AS (
    SELECT
        job, gpu_id, peak_phase, CASE job WHEN 'own' THEN '{"own_memory_factor":1.1}' ELSE '{}' END AS assumptions,
        COLUMNS(* EXCLUDE (job, gpu_id, peak_phase))::DOUBLE
    FROM needs
)

FROM memory_parts('plans')
