CREATE TABLE main.recipe_memory (
    recipe VARCHAR NOT NULL,
    moment VARCHAR NOT NULL,
    category VARCHAR NOT NULL,
    feature VARCHAR NOT NULL,
    bytes DOUBLE NOT NULL
);

COMMENT ON TABLE main.recipe_memory IS 'What a training step of each traced recipe allocates, learned from traces of the real code: bytes per unit of what they are linear in (macro memory_features), by moment of the step and by what they are for. The peak is the highest moment.';
COMMENT ON COLUMN main.recipe_memory.recipe IS 'Key into recipe_settings.';
COMMENT ON COLUMN main.recipe_memory.moment IS 'forward_layers, loss (from the last layer to the end of the forward pass), loss_backward, last_layer_backward, first_layer_backward or optimizer_step. Where two operations of a moment may be the highest, the second one''s rows end in _2, and the higher of the two counts.';
COMMENT ON COLUMN main.recipe_memory.category IS 'What the bytes are for: weights, adapters, gradients, optimizer, stored_activations, working_set, logits, temporaries, hidden_temporaries, communication or workspace.';
COMMENT ON COLUMN main.recipe_memory.feature IS 'What the bytes are linear in: a feature of memory_features, those per token times the tokens of a micro-batch.';
COMMENT ON COLUMN main.recipe_memory.bytes IS 'Bytes per unit of the feature, e.g. 12 bytes of logits per token and entry of the vocabulary.';
