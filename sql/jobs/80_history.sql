-- The rankings and prices kept for past days, and the cost of a job on each of those days.

CREATE OR REPLACE MACRO is_kept_ranking(scenario, price_kind, objective, rank) AS
    rank <= 5 AND (scenario OR (rank = 1 AND objective = 'cost' AND price_kind = 'on_demand'));
COMMENT ON FUNCTION is_kept_ranking IS 'True if ranking_history includes a row of cheapest_gpu_per_workload: it includes the five best rows of each ranking of a scenario, and the cheapest on-demand row of every other workload.';

CREATE OR REPLACE MACRO comparable_prices(offers) AS TABLE
SELECT
    day, source, gpu_id, price_kind, term_days, tier, country, continent,
    min(usd_per_gpu_hour) AS usd_per_gpu_hour
FROM query_table(offers)
WHERE match_status = 'matched' AND gpu_count = floor(gpu_count) AND usd_per_gpu_hour IS NOT NULL
    AND flag_reason IS NULL AND doubt IS NULL AND coalesce(available, TRUE)
    AND coalesce(effective_from <= day, TRUE)
GROUP BY ALL;
COMMENT ON MACRO TABLE comparable_prices IS
    'For each day, source, GPU, price kind, term, tier and place, the lowest price in USD per GPU-hour among the available offers whose GPU is identified and whose price is not in doubt. offers: a relation with the columns of main.offers.';

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
    'The comparable_prices for all days on record, including days that are no longer in offers: day, source, gpu_id, price_kind, term_days, tier, country, continent and usd_per_gpu_hour.';

CREATE OR REPLACE MACRO seen_names(offers) AS TABLE
SELECT 'label' AS kind, source, raw_label AS name, day
FROM query_table(offers)
WHERE match_status IN ('ambiguous', 'unknown')
UNION ALL
SELECT 'region', source, region, day FROM query_table(offers) WHERE region IS NOT NULL AND country IS NULL
UNION ALL
SELECT 'gpu', '', gpu_id, day FROM query_table(offers) WHERE gpu_id IS NOT NULL AND source <> 'imported';
COMMENT ON MACRO TABLE seen_names IS
    'The names seen on each day: for each source, the labels that do not identify a GPU and the regions without a known country; and, for all sources together, the GPUs. offers: a relation with the columns of main.offers.';

CREATE OR REPLACE MACRO seen_days(wanted_kind) AS TABLE
SELECT source, name, min(first_day) AS first_day, max(day) AS last_day
FROM (
    SELECT *, day AS first_day FROM seen_names('main.offers') WHERE day <= getvariable('as_of_day')::DATE
    UNION ALL BY NAME
    FROM history.first_seen
)
WHERE kind = wanted_kind
GROUP BY source, name;
COMMENT ON MACRO TABLE seen_days IS
    'For each of the seen_names of one kind, the first day on record and the last day in offers on which the name occurred.';

CREATE OR REPLACE MACRO wanted_prices(jobs) AS TABLE
SELECT
    j.job, o.day, o.source, o.gpu_id, o.tier, o.price_kind, coalesce(o.term_days, 0) AS term_days,
    min(o.usd_per_gpu_hour)::DOUBLE AS usd_per_gpu_hour
FROM query_table(jobs) AS j
JOIN recorded_prices() AS o
    ON list_contains(j.price_kinds, o.price_kind)
    AND is_wanted(o.gpu_id, j.constraints.gpu_id)
    AND is_wanted(o.source, j.constraints.source)
    AND is_wanted(o.country, j.constraints.country)
    AND is_wanted(o.continent, j.constraints.continent)
LEFT JOIN main.countries AS n ON n.country = o.country
WHERE is_open_place(n.renter_notice, o.country, j.constraints)
GROUP BY ALL;
COMMENT ON MACRO TABLE wanted_prices IS
    'The recorded_prices that meet the constraints of jobs on GPU, source, price kind and place: the lowest per job, day, source, GPU, tier, price kind and term (0 without a term), in USD per GPU-hour. jobs: rows of completed_jobs.';

CREATE OR REPLACE MACRO captures_in_effect(prices) AS TABLE
SELECT d.job, d.day, c.source, max(c.day) AS captured
FROM (SELECT DISTINCT job, day FROM query_table(prices)) AS d
-- A capture counts even if it has none of the wanted prices: then they are no longer offered.
JOIN (SELECT DISTINCT source, day FROM recorded_prices()) AS c ON c.day <= d.day
JOIN main.sources AS s ON s.source = c.source AND c.day >= d.day - s.stale_after_days
GROUP BY d.job, d.day, c.source;
COMMENT ON MACRO TABLE captures_in_effect IS
    'For each job, day and source, the day of the source''s newest capture up to that day (captured); sources whose newest capture is stale are skipped. prices: rows of wanted_prices.';

CREATE OR REPLACE MACRO cost_history(jobs, ranked) AS TABLE
WITH _history_prices AS (
    FROM wanted_prices(jobs)
),

_history_captures AS (
    FROM captures_in_effect('_history_prices')
),

_history_ranked AS (
    SELECT
        r.*, coalesce(r.term_days, 0) AS _term_days,
        (r.compute_usd + r.interruption_usd + r.failure_usd)::DOUBLE
        * (r.usd_per_hour / (r.usd_per_hour + r.host_usd_per_hour))::DOUBLE AS _priced_usd
    FROM query_table(ranked) AS r
),

_history_totals AS (
    SELECT
        c.job, c.day, c.captured, r.gpu, r.gpu_id, r.gpu_count, r.provider, r.source, r.tier, r.price_kind,
        r.hours, then_price.usd_per_gpu_hour,
        r.total_usd::DOUBLE
        + r._priced_usd * (then_price.usd_per_gpu_hour / now_price.usd_per_gpu_hour - 1) AS total_usd
    FROM _history_captures AS c
    JOIN _history_prices AS then_price
        ON then_price.job = c.job AND then_price.source = c.source AND then_price.day = c.captured
    JOIN _history_ranked AS r
        ON r.job = c.job AND r.source = c.source AND r.gpu_id = then_price.gpu_id
        AND r.tier IS NOT DISTINCT FROM then_price.tier AND r.price_kind = then_price.price_kind
        AND r._term_days = then_price.term_days
    JOIN _history_prices AS now_price
        ON now_price.job = r.job AND now_price.source = r.source AND now_price.day = r.price_day
        AND now_price.gpu_id = r.gpu_id AND now_price.tier IS NOT DISTINCT FROM r.tier
        AND now_price.price_kind = r.price_kind AND now_price.term_days = r._term_days
),

_history_sources AS (
    SELECT job, day, count(DISTINCT source) AS sources
    FROM _history_totals
    GROUP BY job, day
)

SELECT
    job, day, round(total_usd, 4) AS total_usd, hours, gpu, gpu_id, gpu_count, provider, source, tier,
    price_kind, usd_per_gpu_hour, sources, captured AS price_day
FROM _history_totals
JOIN _history_sources USING (job, day)
QUALIFY row_number() OVER (
    PARTITION BY job, day ORDER BY total_usd, hours, gpu_count, gpu_id, source, tier NULLS LAST
) = 1
ORDER BY job, day;
COMMENT ON MACRO TABLE cost_history IS
    'The lowest cost of a job on each day on record, in USD, from today''s plans and terms and the prices of that day: those of each source''s newest capture, unless the capture is stale. Only rentals that are still offered today count: sources, cards and tiers that have disappeared since are skipped. sources: the number of sources with a price on that day. jobs: rows of completed_jobs; ranked: rows of cheapest_for.';
