-- How many GPUs does a machine have at sources that price per GPU, and what is the evidence?
SELECT source, gpu_id, tier, gpu_counts, node_network_gbps, max_nodes, evidence, evidence_url, read_on
FROM machine_sizes
ORDER BY source, gpu_id NULLS FIRST, tier NULLS FIRST
