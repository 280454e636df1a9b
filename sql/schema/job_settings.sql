CREATE TABLE main.job_settings (
    setting VARCHAR PRIMARY KEY,
    kind VARCHAR NOT NULL CHECK (kind IN ('amount', 'number', 'whole', 'flag', 'name', 'names', 'machines')),
    recipe BOOLEAN NOT NULL,
    least DOUBLE,
    most DOUBLE,
    default_value VARCHAR,
    unit VARCHAR,
    named VARCHAR,
    choices VARCHAR,
    other_name VARCHAR,
    meaning VARCHAR NOT NULL
);

COMMENT ON TABLE main.job_settings IS 'The settings of a training job: the columns that cheapest_for and its kin read, the options of gpufare cheapest, and the keywords of the Python calls. From catalog/job_settings.csv.';
COMMENT ON COLUMN main.job_settings.setting IS 'Key: the name of the setting.';
COMMENT ON COLUMN main.job_settings.kind IS 'amount (a number, or a text such as 100M in commands and Python), number, whole (a whole number), flag (true or false), name (one), names (several with commas, or a list) or machines (several with semicolons).';
COMMENT ON COLUMN main.job_settings.recipe IS 'True for how the model is trained; false for how much, where and for what.';
COMMENT ON COLUMN main.job_settings.least IS 'The least that a number may be; null: anything above 0.';
COMMENT ON COLUMN main.job_settings.most IS 'The most that a number may be; null: no limit.';
COMMENT ON COLUMN main.job_settings.default_value IS 'What is taken where the setting is left open; null: it constrains nothing, or meaning says what is taken.';
COMMENT ON COLUMN main.job_settings.unit IS 'Unit of a number or a price.';
COMMENT ON COLUMN main.job_settings.named IS 'The setting of job_names whose names it takes (models are those of main.models).';
COMMENT ON COLUMN main.job_settings.choices IS 'All that it may name, separated by blanks, where that is a short fixed list.';
COMMENT ON COLUMN main.job_settings.other_name IS 'What people call it by mistake: named in the error.';
COMMENT ON COLUMN main.job_settings.meaning IS 'What it asks for.';
