-- Which day does the file describe, and how many sources and offers are its rankings made from?
SELECT as_of_day, newest_price_day, oldest_ranked_price_day, sources, sources_ranked, offers_latest,
    offers_ranked, exchange_rate_date, taxes
FROM publication
