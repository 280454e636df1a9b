-- How many prices were accepted on each day, by source?
SELECT day, source, count(*) AS offers, count(gpu_id) AS with_gpu,
    min(usd_per_gpu_hour) AS cheapest_usd_per_gpu_hour
FROM offers
GROUP BY ALL
ORDER BY day DESC, source
