-- Which families of GPUs can a job name, and how many cards are in each?
SELECT name, len(meanings) AS cards
FROM job_names
WHERE setting = 'gpu' AND len(meanings) > 1
ORDER BY cards DESC, name
