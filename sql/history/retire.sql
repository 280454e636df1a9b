-- Removes offers up to the day in the variable retired_to (see KEPT_DAYS in pipeline/warehouse/history.py),
-- except those of each source's newest day, and keeps what later days need from the removed offers.
CREATE VIEW history.retired AS
SELECT o.*
FROM main.offers AS o
ANTI JOIN (SELECT source, max(day) AS day FROM main.offers GROUP BY source) AS n USING (source, day)
WHERE o.day <= getvariable('retired_to')::DATE;

INSERT INTO history.price_series
SELECT
    (SELECT coalesce(max(series_id), 0) FROM history.price_series) + row_number() OVER (
        ORDER BY n.source, n.gpu_id, n.price_kind, n.term_days, n.tier, n.country, n.continent
    ),
    n.*
FROM (
    SELECT DISTINCT source, gpu_id, price_kind, term_days, tier, country, continent
    FROM comparable_prices('history.retired')
    EXCEPT
    SELECT * EXCLUDE (series_id) FROM history.price_series
) AS n;

INSERT INTO history.prices
SELECT p.day, s.series_id, p.usd_per_gpu_hour
FROM comparable_prices('history.retired') AS p
JOIN history.price_series AS s
    ON s.source = p.source AND s.gpu_id = p.gpu_id AND s.price_kind = p.price_kind
    AND s.term_days IS NOT DISTINCT FROM p.term_days AND s.tier IS NOT DISTINCT FROM p.tier
    AND s.country IS NOT DISTINCT FROM p.country AND s.continent IS NOT DISTINCT FROM p.continent
ORDER BY p.day, s.series_id;

INSERT INTO history.first_seen
SELECT kind, source, name, min(day)
FROM seen_names('history.retired')
GROUP BY ALL;
DELETE FROM history.first_seen AS f
WHERE (f.kind, f.source, f.name, f.first_day) NOT IN (
    SELECT (s.kind, s.source, s.name, min(s.first_day))
    FROM history.first_seen AS s
    GROUP BY s.kind, s.source, s.name
);

-- The day nearest to a claim is either the last day before the claim or the first day after it.
INSERT INTO history.claim_prices BY NAME FROM claim_prices('history.retired');
DELETE FROM history.claim_prices AS p
USING (
    SELECT a.claim_id, min(a.day) AS day
    FROM history.claim_prices AS a
    JOIN main.claims AS c ON c.claim_id = a.claim_id AND a.day > c.as_of
    GROUP BY a.claim_id
) AS n
WHERE n.claim_id = p.claim_id AND p.day > n.day;

INSERT INTO history.spot_prices BY NAME FROM spot_prices('history.retired');
DELETE FROM history.spot_prices AS p
WHERE p.day > (
    SELECT min(day)
    FROM (
        SELECT day
        FROM history.spot_prices
        WHERE day > coalesce(
            (SELECT max(as_of) FROM main.claims WHERE quantity = 'spot_discount_percent'), '-infinity'
        )
        GROUP BY day, provider, gpu_id
        HAVING count(spot_usd) > 0 AND count(on_demand_usd) > 0
    )
);

DELETE FROM main.offers AS o
USING (SELECT DISTINCT source, day FROM history.retired) AS r
WHERE r.source = o.source AND r.day = o.day;
DELETE FROM main.rejects WHERE day <= getvariable('retired_to')::DATE;
DROP VIEW history.retired;
