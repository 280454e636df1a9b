SELECT
    as_of_day, epoch_ms(as_of_time) AS as_of_ms, sources_ranked, offers_ranked, exchange_rate_date, taxes,
    planned_counts() AS planned_counts, saving_kinds() AS saving_kinds
FROM main.publication
