CREATE TABLE main.machine_sizes (
    source VARCHAR NOT NULL,
    gpu_id VARCHAR,
    tier VARCHAR,
    gpu_counts INTEGER[] NOT NULL,
    node_network_gbps DOUBLE,
    max_nodes INTEGER CHECK (max_nodes IS NULL OR node_network_gbps IS NOT NULL),
    network_attached BOOLEAN,
    evidence VARCHAR NOT NULL,
    evidence_url VARCHAR,
    read_on DATE NOT NULL,
    note VARCHAR
);

COMMENT ON TABLE main.machine_sizes IS 'How many GPUs the machines of a source have, where its prices do not say, and the network between them. The row of a card counts before that of every card, then that of a tier before that of every tier. From catalog/machine_sizes.csv.';
COMMENT ON COLUMN main.machine_sizes.source IS 'Key into sources.';
COMMENT ON COLUMN main.machine_sizes.gpu_id IS 'Key into gpus; null for every card of the source that has no row.';
COMMENT ON COLUMN main.machine_sizes.tier IS 'Tier as in offers; null for every tier that has no row.';
COMMENT ON COLUMN main.machine_sizes.gpu_counts IS 'Numbers of GPUs that are sold as one machine.';
COMMENT ON COLUMN main.machine_sizes.node_network_gbps IS 'Network between the largest of these machines in 10^9 bits per second and machine; null where it is not known.';
COMMENT ON COLUMN main.machine_sizes.max_nodes IS 'Most machines that can be rented as one cluster; null where it is not known, so that no job is planned on several.';
COMMENT ON COLUMN main.machine_sizes.network_attached IS 'Whether the GPU is reached over a network, which slows training: such offers are not ranked. Null where it is not known.';
COMMENT ON COLUMN main.machine_sizes.evidence IS 'What the row rests on: captured, code, documented or inferred.';
COMMENT ON COLUMN main.machine_sizes.evidence_url IS 'Where it was read.';
COMMENT ON COLUMN main.machine_sizes.read_on IS 'Day on which it was read.';
COMMENT ON COLUMN main.machine_sizes.note IS 'What the source says, or why it was inferred.';
