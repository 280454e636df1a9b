-- warn: a machine has more GPUs than machines with that card hold
SELECT o.source, o.raw_label, o.instance_type, o.gpu_id, o.gpu_count, g.max_gpus_per_node
FROM main.offers_latest AS o
JOIN main.gpus AS g USING (gpu_id)
WHERE o.ranked AND o.gpu_count > g.max_gpus_per_node
