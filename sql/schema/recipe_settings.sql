CREATE TABLE main.recipe_settings (
    recipe VARCHAR NOT NULL,
    is_mapped INTEGER NOT NULL,
    stack VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    quantization VARCHAR NOT NULL,
    kbit_upcast INTEGER NOT NULL,
    training_precision VARCHAR NOT NULL,
    loss_kernel VARCHAR,
    checkpointing VARCHAR NOT NULL,
    flash_attention INTEGER NOT NULL,
    adapter_bytes INTEGER,
    adapts_mlp INTEGER,
    sharding VARCHAR NOT NULL,
    offload VARCHAR,
    optimizer VARCHAR NOT NULL,
    grad_accum INTEGER NOT NULL,
    lora_dropout DOUBLE,
    double_quantization INTEGER NOT NULL,
    agreeing_runs INTEGER NOT NULL,
    proving_family VARCHAR
);

COMMENT ON TABLE main.recipe_settings IS 'The named recipes of catalog/recipes.yaml in the settings of a run. A run with these settings is taken to be the recipe that is mapped; a run that names a recipe is that one.';
COMMENT ON COLUMN main.recipe_settings.recipe IS 'Name of the recipe: key.';
COMMENT ON COLUMN main.recipe_settings.is_mapped IS '1 where runs with these settings are taken to be this recipe; 0 where a run must name it.';
COMMENT ON COLUMN main.recipe_settings.stack IS 'Software stack.';
COMMENT ON COLUMN main.recipe_settings.method IS 'full (which runs of pretrain are, too), lora or qlora.';
COMMENT ON COLUMN main.recipe_settings.quantization IS 'Form of the frozen weights; nf4 with and without double quantization is one here.';
COMMENT ON COLUMN main.recipe_settings.kbit_upcast IS '1 where norms, embeddings and head are upcast to fp32.';
COMMENT ON COLUMN main.recipe_settings.training_precision IS 'bf16 (16-bit weights), amp (fp32 master weights) or fp32.';
COMMENT ON COLUMN main.recipe_settings.loss_kernel IS 'Kernel of the loss; null: the stack''s own.';
COMMENT ON COLUMN main.recipe_settings.checkpointing IS 'none, full or sac.';
COMMENT ON COLUMN main.recipe_settings.flash_attention IS '0 for eager attention.';
COMMENT ON COLUMN main.recipe_settings.adapter_bytes IS 'Bytes per adapter parameter; null without adapters.';
COMMENT ON COLUMN main.recipe_settings.adapts_mlp IS '1 where linear layers of the MLP are adapted; null without adapters.';
COMMENT ON COLUMN main.recipe_settings.sharding IS 'none, ddp, fsdp, zero2 or zero3.';
COMMENT ON COLUMN main.recipe_settings.offload IS 'What is offloaded: act, cpu or cpu+act; null: nothing.';
COMMENT ON COLUMN main.recipe_settings.optimizer IS 'Optimizer. Runs with another one are mapped, too, unless only one of both steps within the backward pass.';
COMMENT ON COLUMN main.recipe_settings.grad_accum IS '2 where gradients are kept over several micro-batches, else 1.';
COMMENT ON COLUMN main.recipe_settings.lora_dropout IS 'Dropout of the adapters'' inputs in the traces; runs with another one are mapped, too. Null without adapters.';
COMMENT ON COLUMN main.recipe_settings.double_quantization IS '1 where the traced weights are quantized doubly (nf4dq); runs without are mapped, too.';
COMMENT ON COLUMN main.recipe_settings.agreeing_runs IS 'Measured runs of identified software, taken to be this recipe, whose memory is within 3% of their own trace: three make its memory count as traced.';
COMMENT ON COLUMN main.recipe_settings.proving_family IS 'Family of measured sources without which fewer than three runs would agree: with it held out the memory does not count as traced; null where others agree, too.';
