CREATE TABLE main.instance_types (
    provider VARCHAR NOT NULL,
    instance_type VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    gpu_count DOUBLE NOT NULL,
    source VARCHAR
);

COMMENT ON TABLE main.instance_types IS 'Which GPUs a cloud''s instance type holds. Facts from catalog/instance_types.csv.';
COMMENT ON COLUMN main.instance_types.provider IS 'The cloud, by source name.';
COMMENT ON COLUMN main.instance_types.instance_type IS 'The cloud''s own name of the machine.';
COMMENT ON COLUMN main.instance_types.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.instance_types.gpu_count IS 'GPUs of the machine; a fraction for a slice.';
COMMENT ON COLUMN main.instance_types.source IS 'Where the fact is from.';
