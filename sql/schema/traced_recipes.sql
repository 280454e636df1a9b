CREATE TABLE main.traced_recipes (
    recipe VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    framework VARCHAR NOT NULL,
    emulates VARCHAR,
    source VARCHAR NOT NULL,
    switches VARCHAR NOT NULL,
    recipe_digest VARCHAR,
    cells INTEGER NOT NULL,
    traces INTEGER NOT NULL,
    versions VARCHAR
);

COMMENT ON TABLE main.traced_recipes IS 'Training recipes whose steps are traced without a GPU, by the real code of their frameworks where it can be had. From catalog/recipes.yaml and catalog/traces.csv; written by gpufare trace-grid.';
COMMENT ON COLUMN main.traced_recipes.recipe IS 'Key, for example hf-lora.';
COMMENT ON COLUMN main.traced_recipes.title IS 'What is run, in a sentence.';
COMMENT ON COLUMN main.traced_recipes.framework IS 'Whose code runs the step.';
COMMENT ON COLUMN main.traced_recipes.emulates IS 'The framework whose switches run on another framework''s code, and what is not its own code; null where the code is real.';
COMMENT ON COLUMN main.traced_recipes.source IS 'Where the framework documents or sets these switches.';
COMMENT ON COLUMN main.traced_recipes.switches IS 'Every switch of the recipe, as JSON: method, precision, adapters, attention, loss, checkpointing, optimizer, sharding.';
COMMENT ON COLUMN main.traced_recipes.recipe_digest IS 'Changes with the switches; null where nothing was traced.';
COMMENT ON COLUMN main.traced_recipes.cells IS 'Architectures times depths times shapes on which the recipe is to be traced.';
COMMENT ON COLUMN main.traced_recipes.traces IS 'Traces in catalog/traces.csv; catalog/traces_failed.csv has those that cannot be made, with the reason.';
COMMENT ON COLUMN main.traced_recipes.versions IS 'Packages whose code ran, each with its version; null where nothing was traced.';
