WITH asked AS (
    SELECT *, 'spot' AS kind FROM jobs
)

SELECT job, rank, source, usd_per_hour, hours_between_interruptions, interruptions, restart_minutes, hours, total_usd
FROM cheapest_published('asked')
