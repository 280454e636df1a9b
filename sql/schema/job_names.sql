CREATE TABLE main.job_names (
    setting VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    meanings VARCHAR[] NOT NULL
);

COMMENT ON TABLE main.job_names IS 'What the naming columns of a job may contain: GPUs and families of them, providers, sources, countries, kinds of price and the like. Models are those of main.models.';
COMMENT ON COLUMN main.job_names.setting IS 'Column of a job: gpu, provider, source, tier, country, continent, kind, stack, ...; exclude_gpu, quote and own take the names of gpu, and so on.';
COMMENT ON COLUMN main.job_names.name IS 'What may be written there. Key, with setting.';
COMMENT ON COLUMN main.job_names.key IS 'The name as names are compared: without case, blanks, dashes and the like.';
COMMENT ON COLUMN main.job_names.meanings IS 'What it means in the tables; a family of GPUs, eu or any mean several.';
