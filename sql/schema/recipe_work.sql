CREATE TABLE main.recipe_work (
    recipe VARCHAR NOT NULL,
    attention VARCHAR NOT NULL,
    quantity VARCHAR NOT NULL,
    part VARCHAR NOT NULL,
    layer_token_hidden DOUBLE NOT NULL,
    layer_token_query DOUBLE NOT NULL,
    layer_token_key_value DOUBLE NOT NULL,
    layer_token_intermediate DOUBLE NOT NULL,
    layer_token_adapted_in DOUBLE NOT NULL,
    layer_token_adapted_out DOUBLE NOT NULL,
    layer_token_adapter_rank DOUBLE NOT NULL,
    layer_token_scores DOUBLE NOT NULL,
    layer_token_grouped_query DOUBLE NOT NULL,
    layer_token_unadapted_down DOUBLE NOT NULL,
    token_hidden DOUBLE NOT NULL,
    token_vocab DOUBLE NOT NULL,
    layer_weights DOUBLE NOT NULL,
    unadapted_down_weights DOUBLE NOT NULL,
    head_weights DOUBLE NOT NULL,
    tied_head_weights DOUBLE NOT NULL,
    adapter_weights DOUBLE NOT NULL,
    token_layer_weights DOUBLE NOT NULL,
    token_unadapted_down_weights DOUBLE NOT NULL,
    token_head_weights DOUBLE NOT NULL,
    token_adapter_weights DOUBLE NOT NULL,
    layer_token_attention DOUBLE NOT NULL,
    layers DOUBLE NOT NULL,
    layer_adapters DOUBLE NOT NULL,
    grouped_layers DOUBLE NOT NULL,
    unadapted_down_layers DOUBLE NOT NULL,
    once DOUBLE NOT NULL,
    largest_error DOUBLE NOT NULL
);

COMMENT ON TABLE main.recipe_work IS 'What one micro-step of a recipe must do, as coefficients of the architecture''s features: counted on traced steps (catalog/recipe_work.csv). A quantity is the sum of coefficient times feature.';
COMMENT ON COLUMN main.recipe_work.recipe IS 'Which weights train, their type, and the types in which adapters, norms and head compute.';
COMMENT ON COLUMN main.recipe_work.attention IS 'Kernel of the attention: flash, efficient or eager.';
COMMENT ON COLUMN main.recipe_work.quantity IS 'What is counted: bytes, FLOPs (a multiplication with its addition is two; attention as if not causal), kernels or host operations.';
COMMENT ON COLUMN main.recipe_work.part IS 'recompute: of repeating the forward pass of the layers; step: of all the rest.';
COMMENT ON COLUMN main.recipe_work.layer_token_hidden IS 'Per product of layers, tokens and hidden width.';
COMMENT ON COLUMN main.recipe_work.layer_token_query IS 'Per product of layers, tokens and width of the queries.';
COMMENT ON COLUMN main.recipe_work.layer_token_key_value IS 'Per product of layers, tokens and width of the keys.';
COMMENT ON COLUMN main.recipe_work.layer_token_intermediate IS 'Per product of layers, tokens and width of the MLP.';
COMMENT ON COLUMN main.recipe_work.layer_token_adapted_in IS 'Per product of layers, tokens and inputs of the adapted linear layers.';
COMMENT ON COLUMN main.recipe_work.layer_token_adapted_out IS 'Per product of layers, tokens and outputs of the adapted linear layers.';
COMMENT ON COLUMN main.recipe_work.layer_token_adapter_rank IS 'Per product of layers, tokens, adapters of a layer and their rank.';
COMMENT ON COLUMN main.recipe_work.layer_token_scores IS 'Per product of layers, tokens, heads and length of the sequence.';
COMMENT ON COLUMN main.recipe_work.layer_token_grouped_query IS 'Per product of layers, tokens and width of the queries, where several heads share a key.';
COMMENT ON COLUMN main.recipe_work.layer_token_unadapted_down IS 'Per product of layers, tokens and hidden width, where the down projection has no adapter.';
COMMENT ON COLUMN main.recipe_work.token_hidden IS 'Per product of tokens and hidden width.';
COMMENT ON COLUMN main.recipe_work.token_vocab IS 'Per product of tokens and vocabulary.';
COMMENT ON COLUMN main.recipe_work.layer_weights IS 'Per weight of the layers.';
COMMENT ON COLUMN main.recipe_work.unadapted_down_weights IS 'Per weight of the down projections, where they have no adapter.';
COMMENT ON COLUMN main.recipe_work.head_weights IS 'Per weight of the head.';
COMMENT ON COLUMN main.recipe_work.tied_head_weights IS 'Per weight of the head, where they are the embedding''s.';
COMMENT ON COLUMN main.recipe_work.adapter_weights IS 'Per weight of the adapters.';
COMMENT ON COLUMN main.recipe_work.token_layer_weights IS 'Per product of tokens and weights of the layers.';
COMMENT ON COLUMN main.recipe_work.token_unadapted_down_weights IS 'Per product of tokens and weights of the down projections, where they have no adapter.';
COMMENT ON COLUMN main.recipe_work.token_head_weights IS 'Per product of tokens and weights of the head.';
COMMENT ON COLUMN main.recipe_work.token_adapter_weights IS 'Per product of tokens and weights of the adapters.';
COMMENT ON COLUMN main.recipe_work.layer_token_attention IS 'Per product of layers, tokens, length of the sequence and width of the queries.';
COMMENT ON COLUMN main.recipe_work.layers IS 'Per layer.';
COMMENT ON COLUMN main.recipe_work.layer_adapters IS 'Per product of layers and adapters of a layer.';
COMMENT ON COLUMN main.recipe_work.grouped_layers IS 'Per product of layers, where several heads share a key.';
COMMENT ON COLUMN main.recipe_work.unadapted_down_layers IS 'Per product of layers, where the down projection has no adapter.';
COMMENT ON COLUMN main.recipe_work.once IS 'Per micro-step.';
COMMENT ON COLUMN main.recipe_work.largest_error IS 'Largest error of the fit over the traces behind it, as a share of the largest trace.';
