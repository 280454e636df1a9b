-- Which families of GPUs can a job name, and how many cards are in each?
SELECT name, count(*) AS cards
FROM job_names
WHERE setting = 'gpu'
GROUP BY name
HAVING count(*) > 1
ORDER BY cards DESC, name
