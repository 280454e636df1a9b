-- What is kept of the days that are no longer in offers.

CREATE OR REPLACE MACRO is_kept_ranking(scenario, price_kind, objective, rank) AS
    rank <= 5 AND (scenario OR (rank = 1 AND objective = 'cost' AND price_kind = 'on_demand'));
COMMENT ON FUNCTION is_kept_ranking IS 'Whether ranking_history keeps a row of cheapest_gpu_per_workload: the five best of each scenario, and of every other workload the cheapest on demand.';

CREATE OR REPLACE MACRO comparable_prices(offers) AS TABLE
SELECT
    day, source, gpu_id, price_kind, term_days, tier, country, continent,
    min(usd_per_gpu_hour) AS usd_per_gpu_hour
FROM query_table(offers)
WHERE match_status = 'matched' AND gpu_count = floor(gpu_count) AND usd_per_gpu_hour IS NOT NULL
    AND flag_reason IS NULL AND coalesce(available, TRUE) AND coalesce(effective_from <= day, TRUE)
GROUP BY ALL;
COMMENT ON MACRO TABLE comparable_prices IS
    'The cheapest price in USD per GPU and hour of each day, source, GPU, price kind, term, tier and place, of offers whose GPU is identified, whose price is not in doubt and that can be had. offers: a relation with the columns of main.offers.';

CREATE OR REPLACE MACRO recorded_prices() AS TABLE
WITH _recorded_offers AS (
    FROM main.offers
)

FROM comparable_prices('_recorded_offers')
UNION ALL BY NAME
SELECT p.day, p.usd_per_gpu_hour, s.* EXCLUDE (series_id)
FROM history.prices AS p
JOIN history.price_series AS s USING (series_id);
COMMENT ON MACRO TABLE recorded_prices IS
    'comparable_prices of all days on record, of those, too, that are no longer in offers: day, source, gpu_id, price_kind, term_days, tier, country, continent, usd_per_gpu_hour.';
