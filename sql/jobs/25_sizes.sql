-- The machines that a source sells, for sources whose prices do not state them.

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
    'The row of machine_sizes (size) that applies to each source, card and tier of a relation of offers: a row for the card takes precedence over one for every card, then one for the tier over one for every tier.';
