WITH there AS (
    SELECT 'us' AS country, 'any' AS kind
)

FROM prices_for('there')
