-- Prices that serve as evidence about claims, by day.

CREATE OR REPLACE MACRO claim_evidence(offers) AS TABLE
SELECT day, gpu_id, provider, price_kind, term_days, usd_per_gpu_hour, source
FROM query_table(offers)
WHERE match_status = 'matched' AND flag_reason IS NULL AND doubt IS NULL
    AND usd_per_gpu_hour IS NOT NULL AND gpu_count = floor(gpu_count)
    AND coalesce(effective_from <= day, TRUE);
COMMENT ON MACRO TABLE claim_evidence IS
    'The prices in a relation of offers that count as evidence about claims: the GPU is identified, and the price is in force and not in doubt.';

CREATE OR REPLACE MACRO claim_prices(offers) AS TABLE
WITH _claimed_cards AS (
    SELECT c.gpu_id, o.gpu_id AS offered
    FROM main.gpus AS c
    JOIN main.gpus AS o ON o.gpu_id = c.gpu_id
        OR (c.derived_from IS NOT NULL AND o.model = c.model AND o.memory_gb = c.memory_gb)
)

SELECT
    c.claim_id, p.day, p.provider, min(p.source) AS source,
    min(p.usd_per_gpu_hour)::DOUBLE AS cheapest,
    max(p.usd_per_gpu_hour)::DOUBLE AS dearest
FROM ruled_claims() AS c
JOIN _claimed_cards AS g USING (gpu_id)
JOIN claim_evidence(offers) AS p ON p.gpu_id = g.offered AND p.price_kind = c.price_kind
    AND (c.provider IS NULL OR starts_with(lower(p.provider), lower(c.provider)))
    AND (c.quantity <> 'usd_per_year' OR p.term_days BETWEEN 360 AND 366)
WHERE c.kind = 'price'
GROUP BY ALL;
COMMENT ON MACRO TABLE claim_prices IS
    'For each claim about a price, and each day and provider in a relation of offers, the range of prices for the claimed card, in USD per GPU-hour. A claim that names no form factor covers all form factors of the card.';

CREATE OR REPLACE MACRO spot_prices(offers) AS TABLE
SELECT
    day, provider, gpu_id,
    min(usd_per_gpu_hour) FILTER (price_kind = 'spot') AS spot_usd,
    min(usd_per_gpu_hour) FILTER (price_kind = 'on_demand') AS on_demand_usd
FROM claim_evidence(offers)
GROUP BY ALL
HAVING spot_usd IS NOT NULL OR on_demand_usd IS NOT NULL;
COMMENT ON MACRO TABLE spot_prices IS
    'For each day, provider and card in a relation of offers, the lowest spot price and the lowest on-demand price, in USD per GPU-hour.';
