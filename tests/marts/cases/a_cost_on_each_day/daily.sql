WITH there AS (
    SELECT 'us' AS country
)

FROM daily_prices_for('there')
