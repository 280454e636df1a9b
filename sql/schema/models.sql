CREATE TABLE main.models (
    model VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    params_total BIGINT NOT NULL,
    params_linear BIGINT NOT NULL,
    params_active BIGINT NOT NULL,
    layers INTEGER NOT NULL,
    hidden INTEGER NOT NULL,
    intermediate INTEGER NOT NULL,
    gated_mlp INTEGER NOT NULL,
    heads INTEGER NOT NULL,
    kv_heads INTEGER NOT NULL,
    head_dim INTEGER NOT NULL,
    vocab INTEGER NOT NULL,
    tied_embeddings INTEGER NOT NULL,
    experts INTEGER NOT NULL,
    experts_active INTEGER NOT NULL,
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
COMMENT ON COLUMN main.models.head_dim IS 'Width of one head.';
COMMENT ON COLUMN main.models.vocab IS 'Vocabulary entries.';
COMMENT ON COLUMN main.models.tied_embeddings IS '1 where input embeddings and head share their weights.';
COMMENT ON COLUMN main.models.experts IS 'Experts per layer; 1 in a dense model.';
COMMENT ON COLUMN main.models.experts_active IS 'Experts that one token passes through.';
COMMENT ON COLUMN main.models.max_context IS 'Longest sequence that the model supports, in tokens.';
COMMENT ON COLUMN main.models.licence IS 'Licence of the weights.';
COMMENT ON COLUMN main.models.hf_id IS 'Repository of the weights.';
COMMENT ON COLUMN main.models.source IS 'Where the specifications are from.';
