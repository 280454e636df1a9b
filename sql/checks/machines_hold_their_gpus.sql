-- warn: an offer has more GPUs than fit in one machine, but they do not fill a whole number of machines
SELECT o.source, o.raw_label, o.instance_type, o.gpu_id, o.gpu_count, g.max_gpus_per_node
FROM main.offers_latest AS o
JOIN main.gpus AS g USING (gpu_id)
WHERE o.ranked AND o.gpu_count > g.max_gpus_per_node AND o.gpu_count % g.max_gpus_per_node <> 0
