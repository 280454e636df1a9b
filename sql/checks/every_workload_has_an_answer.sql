-- warn: a workload does not fit on any GPU that is offered on demand
SELECT workload
FROM main.workloads
ANTI JOIN (
    FROM main.cheapest_gpu_per_workload
    WHERE price_kind = 'on_demand' AND day = getvariable('as_of_day')::DATE
) AS c
    USING (workload)
