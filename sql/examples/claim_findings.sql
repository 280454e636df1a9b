-- Of the guides' claims that were checked without prices, how many did each check refute?
SELECT checked_by, count(*) AS checked, count_if(verdict NOT LIKE 'holds%') AS refuted
FROM claim_findings
GROUP BY checked_by
ORDER BY checked_by
