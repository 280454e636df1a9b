-- The machine sizes of sources whose prices do not state the size of the machine.

CREATE OR REPLACE MACRO catalogued_sizes(offers) AS TABLE
WITH _size_keys AS (
    SELECT DISTINCT source, gpu_id, tier
    FROM query_table(offers)
)

SELECT
    o.source, o.gpu_id, o.tier,
    arg_max(m, 2 * (m.gpu_id IS NOT NULL)::INTEGER + (m.tier IS NOT NULL)::INTEGER) AS size
FROM _size_keys AS o
JOIN main.machine_sizes AS m
    ON m.source = o.source AND (m.gpu_id IS NULL OR m.gpu_id = o.gpu_id)
    AND (m.tier IS NULL OR m.tier = o.tier)
GROUP BY ALL;
COMMENT ON MACRO TABLE catalogued_sizes IS
    'For each source, card and tier in a relation of offers, the row of machine_sizes that applies, as the struct size: a row for the card takes precedence over a row for all cards, and then a row for the tier over a row for all tiers.';
