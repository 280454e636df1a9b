-- The workloads as jobs with the place and tier classes of report_variant (see completed_jobs), ranked by
-- cost: each price kind separately or, if report_any is true, all the kinds that 'any' covers together.
SELECT
    w.* REPLACE (
        c.constraints AS constraints, NOT getvariable('report_any') AS ranks_each_kind
    ),
    CASE WHEN getvariable('report_any') THEN c.price_kinds ELSE price_kinds() END AS price_kinds
FROM workload_jobs() AS w
CROSS JOIN completed_jobs('report_variant') AS c
