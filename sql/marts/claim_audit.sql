-- Each check that applies to a claim gives a finding; the finding that comes first in this list counts:
--   1 arithmetic wrong: the document's own operands give another number.
--   2 contradicted by measurement: datasheet, published runs, the model fitted to runs, or prices that day.
--   3 holds with conditions, on the same kinds of evidence.
--   4 holds, on the same kinds of evidence.
--   5 contradicted by another claim that is not itself refuted; neither claim is preferred.
--   6 holds: the arithmetic is right, and there is no other evidence.
--   7 cannot be checked: the prices are from another time.
-- A claim without any finding cannot be checked.
WITH _claims AS MATERIALIZED (
    SELECT * FROM ruled_claims()
),

-- Prices read on the day nearest to the claim, whether or not that day is still in offers.
_offers AS (
    SELECT * FROM main.offers WHERE day <= getvariable('as_of_day')::DATE
),

_asked AS (
    SELECT claim_id, day, provider, min(source) AS source, min(cheapest) AS cheapest, max(dearest) AS dearest
    FROM (FROM claim_prices('_offers') UNION ALL BY NAME FROM history.claim_prices)
    GROUP BY ALL
),

_of_providers AS (
    SELECT a.*
    FROM _asked AS a
    JOIN _claims AS c USING (claim_id)
    QUALIFY dense_rank() OVER (PARTITION BY a.claim_id ORDER BY abs(a.day - c.as_of), a.day) = 1
),

_seen AS (
    SELECT
        claim_id, day, count(*) AS providers, min(source) AS source,
        min(cheapest) AS cheapest, max(dearest) AS dearest,
        quantile_cont(cheapest, 0.25) AS lower_quartile, quantile_cont(cheapest, 0.75) AS upper_quartile
    FROM _of_providers
    GROUP BY claim_id, day
),

_price_ranges AS (
    SELECT
        c.*, s.day, s.providers, s.source,
        abs(s.day - c.as_of) <= price_days AS same_time,
        CASE WHEN c.quantity = 'usd_per_year' THEN 8760 ELSE coalesce(c.gpu_count, 1) END AS times,
        times * CASE
            WHEN c.quantity = 'cheapest_usd_per_hour' THEN s.cheapest
            WHEN c.provider IS NOT NULL THEN s.cheapest
            ELSE s.lower_quartile
        END AS seen_low,
        times * CASE
            WHEN c.quantity = 'cheapest_usd_per_hour' THEN s.cheapest
            WHEN c.provider IS NOT NULL THEN s.dearest
            ELSE s.upper_quartile
        END AS seen_high,
        c.value <= seen_high * price_factor AND c.high >= seen_low / price_factor AS agrees
    FROM _claims AS c
    JOIN _seen AS s USING (claim_id)
    WHERE c.quantity <> 'providers'
),

_by_price AS (
    SELECT
        claim_id,
        CASE WHEN agrees AND same_time THEN 'holds' WHEN agrees THEN 'holds with conditions'
            WHEN same_time THEN 'contradicted by measurement' ELSE 'cannot be checked' END AS verdict,
        CASE
            WHEN value > seen_high THEN seen_high
            WHEN high < seen_low THEN seen_low
            ELSE value
        END AS should_be,
        to_json({
            'finding': CASE
                WHEN provider IS NOT NULL THEN 'price_of_provider'
                WHEN quantity = 'cheapest_usd_per_hour' THEN 'cheapest_price'
                ELSE 'middle_prices'
            END,
            'provider': provider, 'providers': providers, 'low': seen_low, 'high': seen_high, 'day': day,
            'days_apart': CASE WHEN NOT same_time THEN abs(day - as_of) END
        }) AS why,
        concat_ws(' ', 'offers', CASE WHEN provider IS NOT NULL THEN source END, day) AS evidence
    FROM _price_ranges
),

-- If no price was read at all, the absence of a price proves nothing.
_any_price AS (
    SELECT 1 AS found
    WHERE EXISTS (FROM claim_evidence('_offers')) OR EXISTS (FROM history.spot_prices)
),

_by_providers AS (
    SELECT
        c.claim_id,
        CASE WHEN coalesce(s.providers, 0) < c.value THEN 'cannot be checked'
            WHEN c.value = 0 AND s.providers > 0 THEN 'contradicted by measurement'
            ELSE 'holds with conditions' END AS verdict,
        coalesce(s.providers, 0) AS should_be,
        to_json({'finding': 'providers', 'day': s.day}) AS why,
        'offers' AS evidence
    FROM _claims AS c
    LEFT JOIN _seen AS s USING (claim_id)
    WHERE c.quantity = 'providers' AND EXISTS (FROM _any_price)
),

-- Spot savings: a provider's lowest spot price for a card against its lowest on-demand price that day.
_spot AS (
    SELECT
        day, provider, gpu_id,
        100 * (1 - min(spot_usd) / min(on_demand_usd)) AS discount
    FROM (FROM spot_prices('_offers') UNION ALL BY NAME FROM history.spot_prices)
    GROUP BY ALL
    HAVING discount IS NOT NULL
),

_discounts AS (
    SELECT
        c.claim_id, s.day, count(*) AS pairs,
        quantile_cont(s.discount::DOUBLE, 0.25) AS lower_quartile,
        quantile_cont(s.discount::DOUBLE, 0.5) AS median,
        quantile_cont(s.discount::DOUBLE, 0.75) AS upper_quartile
    FROM _claims AS c
    JOIN _spot AS s ON TRUE
    WHERE c.quantity = 'spot_discount_percent'
    GROUP BY c.claim_id, c.as_of, s.day
    QUALIFY row_number() OVER (PARTITION BY c.claim_id ORDER BY abs(s.day - c.as_of), s.day) = 1
),

_by_discount AS (
    SELECT
        c.claim_id,
        CASE WHEN d.median BETWEEN c.lowest AND c.highest THEN 'holds'
            WHEN d.upper_quartile >= c.lowest AND d.lower_quartile <= c.highest THEN 'holds with conditions'
            WHEN abs(d.day - c.as_of) <= price_days THEN 'contradicted by measurement'
            ELSE 'cannot be checked' END AS verdict,
        d.median AS should_be,
        to_json({
            'finding': 'spot_discount', 'day': d.day, 'pairs': d.pairs,
            'low': d.lower_quartile, 'high': d.upper_quartile
        }) AS why,
        'offers ' || d.day AS evidence
    FROM _claims AS c
    JOIN _discounts AS d USING (claim_id)
),

-- Finding 5: claims about the same thing whose ranges do not overlap.
_named AS (
    SELECT claim_id AS one, unnest(string_split(disagrees_with, ';')) AS other
    FROM _claims
    WHERE disagrees_with IS NOT NULL
),

_differ AS (
    SELECT c.claim_id, o.claim_id AS other, o.claim, o.document, o.value, o.high, o.unit
    FROM (SELECT one, other FROM _named UNION SELECT other, one FROM _named) AS n
    JOIN _claims AS c ON c.claim_id = n.one
    JOIN _claims AS o ON o.claim_id = n.other AND o.unit = c.unit
    WHERE c.lowest > o.highest OR c.highest < o.lowest
),

_evidence AS MATERIALIZED (
    SELECT claim_id, verdict, should_be, why, evidence, checked_by = 'arithmetic' AS own_words
    FROM main.claim_findings
    UNION ALL BY NAME
    FROM _by_price
    UNION ALL BY NAME
    FROM _by_providers
    UNION ALL BY NAME
    FROM _by_discount
),

_by_other_claim AS (
    SELECT
        claim_id,
        'contradicted by another claim' AS verdict,
        arg_min(value, other) AS should_be,
        to_json({'finding': 'other_claims', 'claims': list(claim ORDER BY other)}) AS why,
        'claims ' || string_agg(other, ', ' ORDER BY other) AS evidence
    FROM _differ
    -- A claim that the evidence refutes does not contradict other claims.
    WHERE other NOT IN (
        SELECT claim_id
        FROM _evidence
        WHERE verdict IN ('arithmetic wrong', 'contradicted by measurement')
    )
    GROUP BY claim_id
),

_findings AS (
    FROM _evidence
    UNION ALL BY NAME
    FROM _by_other_claim
),

_first AS (
    SELECT *
    FROM _findings
    QUALIFY row_number() OVER (
        PARTITION BY claim_id
        ORDER BY CASE
            WHEN verdict = 'arithmetic wrong' THEN 1
            WHEN verdict = 'contradicted by measurement' THEN 2
            WHEN verdict = 'holds with conditions' THEN 3
            WHEN verdict = 'holds' AND own_words IS NOT TRUE THEN 4
            WHEN verdict = 'contradicted by another claim' THEN 5
            WHEN verdict = 'holds' THEN 6
            ELSE 7
        END
    ) = 1
),

_disagreements AS (
    SELECT claim_id, string_agg(other, ';' ORDER BY other) AS disagrees_with
    FROM _differ
    GROUP BY claim_id
)

SELECT
    c.claim_id, c.document, c.title, c.line, c.place, c.kind, c.claim, c.value, c.value_high,
    coalesce(f.verdict, 'cannot be checked') AS verdict,
    f.should_be,
    c.unit,
    coalesce(f.why, to_json({
        'finding': 'no_' || CASE WHEN c.kind IN ('price', 'quality') THEN c.kind ELSE 'measurement' END
    })) AS why,
    f.evidence,
    d.disagrees_with
FROM _claims AS c
LEFT JOIN _first AS f USING (claim_id)
LEFT JOIN _disagreements AS d USING (claim_id)
ORDER BY c.claim_id
