-- Which methods and models are outside the scope of a job, and what comes nearest?
SELECT setting, names, why, nearest
FROM out_of_scope
ORDER BY setting, names
