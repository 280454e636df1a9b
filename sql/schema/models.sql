CREATE TABLE main.models (
    model VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    params_total BIGINT NOT NULL,
    params_linear BIGINT NOT NULL,
    params_active BIGINT NOT NULL,
    layers INTEGER NOT NULL,
    hidden BIGINT NOT NULL,
    intermediate INTEGER NOT NULL,
    gated_mlp INTEGER NOT NULL,
    heads INTEGER NOT NULL,
    kv_heads INTEGER NOT NULL,
    head_dim INTEGER NOT NULL,
    vocab INTEGER NOT NULL,
    tied_embeddings INTEGER NOT NULL,
    experts INTEGER NOT NULL,
    experts_active INTEGER NOT NULL,
    sliding_window INTEGER,
    full_attention_layers INTEGER,
    linear_attention_layers INTEGER,
    kv_latent INTEGER,
    q_latent INTEGER,
    rope_head_dim INTEGER,
    value_head_dim INTEGER,
    shared_intermediate INTEGER,
    dense_layers INTEGER,
    dense_intermediate INTEGER,
    cross_attention_layers INTEGER,
    linear_mixer_params BIGINT,
    extra_linear_params BIGINT,
    extra_embedding_params BIGINT,
    max_context INTEGER,
    licence VARCHAR,
    hf_id VARCHAR,
    source VARCHAR
);

COMMENT ON TABLE main.models IS 'Architecture of the models that can be trained. From catalog/models.csv; parameter counts are computed from the shapes.';
COMMENT ON COLUMN main.models.model IS 'Key, lower case, for example llama-3.1-8b.';
COMMENT ON COLUMN main.models.title IS 'Usual name.';
COMMENT ON COLUMN main.models.params_total IS 'All parameters.';
COMMENT ON COLUMN main.models.params_linear IS 'Parameters in the layers'' matrix products; embeddings, head and norms are left out.';
COMMENT ON COLUMN main.models.params_active IS 'Parameters that one token passes through: fewer than all of them in a mixture of experts.';
COMMENT ON COLUMN main.models.layers IS 'Transformer layers.';
COMMENT ON COLUMN main.models.hidden IS 'Width of the residual stream.';
COMMENT ON COLUMN main.models.intermediate IS 'Width of the MLP, of one expert in a mixture of experts.';
COMMENT ON COLUMN main.models.gated_mlp IS '1 where the MLP has three matrices (SwiGLU, GeGLU), 0 where two.';
COMMENT ON COLUMN main.models.heads IS 'Attention heads.';
COMMENT ON COLUMN main.models.kv_heads IS 'Key and value heads.';
COMMENT ON COLUMN main.models.head_dim IS 'Width of one head''s queries and keys, the rotary part included.';
COMMENT ON COLUMN main.models.vocab IS 'Vocabulary entries.';
COMMENT ON COLUMN main.models.tied_embeddings IS '1 where input embeddings and head share their weights.';
COMMENT ON COLUMN main.models.experts IS 'Experts per layer; 1 in a dense model.';
COMMENT ON COLUMN main.models.experts_active IS 'Experts that one token passes through.';
COMMENT ON COLUMN main.models.sliding_window IS 'Tokens that a layer with sliding-window attention looks back; null where every layer sees the whole sequence.';
COMMENT ON COLUMN main.models.full_attention_layers IS 'Layers whose attention spans the whole sequence, where the others have a sliding window or a linear-time mixer; null: all that are not linear_attention_layers, or none where there is a sliding_window.';
COMMENT ON COLUMN main.models.linear_attention_layers IS 'Layers with a linear-time mixer in place of attention (Mamba, gated delta net); null: none.';
COMMENT ON COLUMN main.models.kv_latent IS 'Multi-head latent attention: width that keys and values are compressed to; null where there is none.';
COMMENT ON COLUMN main.models.q_latent IS 'Multi-head latent attention: width that queries are compressed to; null where they are not.';
COMMENT ON COLUMN main.models.rope_head_dim IS 'Multi-head latent attention: part of head_dim that carries the rotary position, shared by all heads in the keys.';
COMMENT ON COLUMN main.models.value_head_dim IS 'Width of one head''s values where it is not head_dim.';
COMMENT ON COLUMN main.models.shared_intermediate IS 'Mixture of experts: width of the shared experts, all of them together; null where there are none.';
COMMENT ON COLUMN main.models.dense_layers IS 'Mixture of experts: layers with a dense MLP in place of experts; null: none.';
COMMENT ON COLUMN main.models.dense_intermediate IS 'Width of the MLP in dense_layers.';
COMMENT ON COLUMN main.models.cross_attention_layers IS 'Decoder layers that also attend to an encoder; null in a model without encoder. Layers of encoder and decoder are counted together.';
COMMENT ON COLUMN main.models.linear_mixer_params IS 'Parameters of one layer''s linear-time mixer.';
COMMENT ON COLUMN main.models.extra_linear_params IS 'Parameters in matrix products that the other columns do not give, in all layers together: output gates of attention, indexers of sparse attention, full layers with wider heads; negative where layers share keys and values.';
COMMENT ON COLUMN main.models.extra_embedding_params IS 'Parameters of embeddings beyond vocabulary and head: tables of positions, embeddings per layer.';
COMMENT ON COLUMN main.models.max_context IS 'Longest sequence that the model supports, in tokens.';
COMMENT ON COLUMN main.models.licence IS 'Licence of the weights.';
COMMENT ON COLUMN main.models.hf_id IS 'Repository of the weights.';
COMMENT ON COLUMN main.models.source IS 'Where the specifications are from.';
