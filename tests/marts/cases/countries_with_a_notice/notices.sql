SELECT job, rank, country, total_usd, pick, cautions, assumptions::JSON ->> 'countries_left_out' AS left_out
FROM cheapest_published('jobs')
