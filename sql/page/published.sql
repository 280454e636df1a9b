SELECT
    as_of_day, epoch_ms(as_of_time) AS as_of_ms, newest_price_day, oldest_ranked_price_day, sources,
    sources_ranked, offers_latest, offers_ranked, exchange_rate_date, taxes,
    planned_counts() AS planned_counts
FROM main.publication
