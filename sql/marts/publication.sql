SELECT
    getvariable('as_of_day')::DATE AS as_of_day,
    getvariable('as_of_time')::TIMESTAMPTZ AS as_of_time,
    max(day) AS newest_price_day,
    min(day) FILTER (ranked) AS oldest_ranked_price_day,
    (SELECT count(*) FROM main.sources WHERE kind = 'prices') AS sources,
    count(DISTINCT source) FILTER (ranked) AS sources_ranked,
    count(*) AS offers_latest,
    count(*) FILTER (ranked) AS offers_ranked,
    max(fx_date) AS exchange_rate_date,
    'Prices are without taxes.' AS taxes
FROM main.offers_latest
