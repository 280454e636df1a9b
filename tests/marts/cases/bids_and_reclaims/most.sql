WITH asked AS (
    SELECT 'm' AS model, 'spot' AS kind, 10000 AS max_hours, unnest([15.8, 16, 33.2, 33.3]) * 3.6e7 AS tokens
)

SELECT job, rank, source, interruptions
FROM cheapest_published('asked')
