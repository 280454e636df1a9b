SELECT 'label' AS kind, * FROM seen_days('label')
UNION ALL
SELECT 'region', * FROM seen_days('region')
UNION ALL
SELECT 'gpu', * FROM seen_days('gpu')
