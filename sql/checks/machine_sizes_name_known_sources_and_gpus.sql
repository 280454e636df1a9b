-- fail: a machine size names a source or GPU that does not exist
SELECT m.source, m.gpu_id
FROM main.machine_sizes AS m
WHERE m.source NOT IN (SELECT source FROM main.sources)
    OR m.gpu_id NOT IN (SELECT gpu_id FROM main.gpus)
