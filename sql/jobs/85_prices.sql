-- Prices per GPU-hour, without a job: today's by card and provider, and the lowest on each day on record.

CREATE OR REPLACE MACRO price_questions(constraints) AS TABLE
WITH _price_asked AS (
    -- Prices depend on no model and no work, which every job must name.
    SELECT *, (SELECT min(m.model) FROM main.models AS m) AS model, 1 AS tokens
    FROM query_table(constraints)
)

FROM completed_jobs('_price_asked');
COMMENT ON MACRO TABLE price_questions IS
    'Questions for prices as rows of completed_jobs. constraints: a table or CTE with the settings of main.job_settings that constrain offers (gpu, kind, country, provider, ...), all optional.';

CREATE OR REPLACE MACRO gpu_prices(jobs) AS TABLE
SELECT
    j.job,
    ((r.usd_per_hour + r.host_usd_per_hour) / r.gpus_billed)::DECIMAL(18, 8) AS usd_per_gpu_hour,
    r.gpu_id, gpu_name(g.model, g.form_factor, g.memory_gb) AS gpu, r.gpus_billed AS gpu_count,
    (r.usd_per_hour + r.host_usd_per_hour)::DECIMAL(18, 8) AS usd_per_hour,
    r.provider, r.country, r.region, r.price_kind, r.term_days, r.tier, r.tier_class, r.available,
    r.instance_type, r.doubt, r.price_day, r.price_age_days, r.source, r.source_url
FROM query_table(jobs) AS j
JOIN (SELECT * REPLACE ('offered' AS size_evidence) FROM main.rentals) AS r
    ON is_rental_wanted(
        r.price_kind, r.provider, r.source, r.tier_class, r.country, r.continent, r.term_days,
        r.price_age_days, r.size_evidence, j.price_kinds, j.constraints, j.assumed_sizes
    )
    AND is_open_place(r.renter_notice, r.country, j.constraints) AND is_wanted(r.gpu_id, j.constraints.gpu_id)
    AND r.gpus_billed >= coalesce(j.min_gpus, 1)
    AND coalesce(r.gpus_billed <= j.asked['gpus']::INTEGER, TRUE)
JOIN main.gpus AS g ON g.gpu_id = r.gpu_id
QUALIFY row_number() OVER (
    PARTITION BY j.job, r.gpu_id, r.price_kind, r.term_days, r.provider
    ORDER BY usd_per_gpu_hour, r.gpus_billed, r.source, r.region NULLS LAST, r.instance_type NULLS LAST
) = 1
ORDER BY j.job, usd_per_gpu_hour, gpu_count, r.gpu_id, r.provider, r.price_kind, r.term_days;
COMMENT ON MACRO TABLE gpu_prices IS
    'Today''s prices that meet the constraints of jobs, cheapest first: for each job, card, provider, price kind and term, the machine with the lowest price in USD per GPU-hour, including the charge for its host. gpu_count and usd_per_hour: the GPUs and the price of that machine. Prices per GPU whose source does not say which machines it sells are included. jobs: rows of price_questions.';

CREATE OR REPLACE MACRO skipped_prices(jobs) AS TABLE
SELECT
    j.job,
    count(*) FILTER (
        (asks_country AND o.country IS NULL) OR (asks_continent AND o.continent IS NULL)
    ) AS offers_without_place,
    list(DISTINCT o.country ORDER BY o.country) FILTER (
        n.renter_notice = 'sanctions' AND j.constraints.country.wanted IS NULL
    ) AS countries_left_out
FROM (
    SELECT
        *,
        coalesce(constraints.country.wanted, constraints.country.unwanted) IS NOT NULL AS asks_country,
        coalesce(constraints.continent.wanted, constraints.continent.unwanted) IS NOT NULL AS asks_continent
    FROM query_table(jobs)
) AS j
JOIN main.offers_latest AS o
    ON o.ranked AND list_contains(j.price_kinds, o.price_kind) AND is_wanted(o.gpu_id, j.constraints.gpu_id)
    AND is_wanted(o.provider, j.constraints.provider) AND is_wanted(o.source, j.constraints.source)
    AND is_wanted(o.tier_class, j.constraints.tier_class)
LEFT JOIN main.countries AS n ON n.country = o.country
GROUP BY j.job;
COMMENT ON MACRO TABLE skipped_prices IS
    'What gpu_prices skips because of its place: for each job, the number of offers of the wanted cards, kinds, providers and tiers whose place is not known although the job asks for one, and the countries under sanctions (null if none) that have such offers. jobs: rows of price_questions.';

CREATE OR REPLACE MACRO prices_for(constraints) AS TABLE
WITH _price_jobs AS (
    FROM price_questions(constraints)
)

FROM gpu_prices('_price_jobs');
COMMENT ON MACRO TABLE prices_for IS
    'gpu_prices for your own questions: dollars per GPU-hour by card and provider, cheapest first. constraints: the name of a table or CTE; see price_questions for its columns.';

CREATE OR REPLACE MACRO daily_prices(jobs) AS TABLE
WITH _daily_prices AS (
    FROM wanted_prices(jobs)
),

_daily_captures AS (
    FROM captures_in_effect('_daily_prices')
)

SELECT
    c.job, c.day, p.gpu_id, p.price_kind, min(p.usd_per_gpu_hour) AS usd_per_gpu_hour,
    arg_min(p.source, {'usd': p.usd_per_gpu_hour, 'source': p.source}) AS source,
    arg_min(c.captured, {'usd': p.usd_per_gpu_hour, 'source': p.source}) AS price_day,
    count(DISTINCT p.source) AS sources
FROM _daily_captures AS c
JOIN _daily_prices AS p ON p.job = c.job AND p.source = c.source AND p.day = c.captured
GROUP BY c.job, c.day, p.gpu_id, p.price_kind
ORDER BY c.job, p.gpu_id, p.price_kind, c.day;
COMMENT ON MACRO TABLE daily_prices IS
    'The lowest price of each card and price kind on each day on record, in USD per GPU-hour, with its source, the day on which that source was read, and the number of sources with a price. On each day, a source''s prices are those of its newest capture, unless the capture is stale. Charges for hosts are not included. jobs: rows of price_questions; constraints other than those of wanted_prices are ignored.';

CREATE OR REPLACE MACRO daily_prices_for(constraints) AS TABLE
WITH _daily_jobs AS (
    FROM price_questions(constraints)
)

FROM daily_prices('_daily_jobs');
COMMENT ON MACRO TABLE daily_prices_for IS
    'daily_prices for your own questions. constraints: the name of a table or CTE with the columns gpu, kind, country, continent and source, or some of them; see price_questions.';
