CREATE TABLE main.recipe_memory_by_version (
    recipe VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    layers INTEGER NOT NULL,
    micro_batch INTEGER NOT NULL,
    seq_len INTEGER NOT NULL,
    versions VARCHAR NOT NULL,
    phase VARCHAR NOT NULL,
    allocated_bytes BIGINT NOT NULL,
    reserved_bytes BIGINT NOT NULL,
    PRIMARY KEY (recipe, model, layers, micro_batch, seq_len, versions, phase)
);

COMMENT ON TABLE main.recipe_memory_by_version IS 'Peak memory of the same training step under different versions of its libraries, traced without a GPU on models cut to a few layers. From catalog/recipe_memory_by_version.csv; written by gpufare trace-grid --by-version.';
COMMENT ON COLUMN main.recipe_memory_by_version.recipe IS 'Key into traced_recipes.';
COMMENT ON COLUMN main.recipe_memory_by_version.model IS 'Key into models.';
COMMENT ON COLUMN main.recipe_memory_by_version.layers IS 'Layers that the model was cut to.';
COMMENT ON COLUMN main.recipe_memory_by_version.micro_batch IS 'Sequences of one forward pass.';
COMMENT ON COLUMN main.recipe_memory_by_version.seq_len IS 'Tokens of one sequence.';
COMMENT ON COLUMN main.recipe_memory_by_version.versions IS 'Packages whose code ran, each with its version.';
COMMENT ON COLUMN main.recipe_memory_by_version.phase IS 'forward, backward or optimizer.';
COMMENT ON COLUMN main.recipe_memory_by_version.allocated_bytes IS 'Most bytes of tensors alive in the phase, as torch.cuda.max_memory_allocated counts.';
COMMENT ON COLUMN main.recipe_memory_by_version.reserved_bytes IS 'Most bytes that the caching allocator holds up to the end of the phase, by replaying it.';
