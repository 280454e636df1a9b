CREATE TABLE main.claims (
    claim_id VARCHAR PRIMARY KEY,
    document VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    line INTEGER NOT NULL,
    place VARCHAR NOT NULL,
    claim VARCHAR NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('price', 'memory', 'speed', 'time', 'cost', 'spec', 'saving',
        'quality', 'arithmetic')),
    quantity VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    value_high DOUBLE CHECK (value_high >= value),
    or_more BOOLEAN,
    unit VARCHAR NOT NULL,
    as_of DATE NOT NULL,
    provider VARCHAR,
    price_kind VARCHAR CHECK (price_kind IN ('on_demand', 'flex_start', 'spot', 'reserved', 'serverless')),
    model VARCHAR,
    method VARCHAR CHECK (method IN ('full', 'lora', 'qlora', 'pretrain')),
    quantization VARCHAR,
    gpu_id VARCHAR,
    gpu_count INTEGER CHECK (gpu_count > 0),
    seq_len INTEGER,
    micro_batch INTEGER,
    lora_rank INTEGER,
    checkpointing VARCHAR,
    stack VARCHAR,
    training_precision VARCHAR,
    versus VARCHAR,
    tokens DOUBLE,
    tokens_per_second DOUBLE,
    hours DOUBLE,
    usd_per_hour DOUBLE,
    formula VARCHAR CHECK (formula IN (
        'a + b', 'a - b', 'a * b', 'a / b', 'a * b / c', 'least', 'saving of a against b',
        'tokens / tokens_per_second', 'hours * usd_per_hour', 'a * storage price', 'a * context of the model'
    )),
    terms VARCHAR,
    tolerance DOUBLE,
    disagrees_with VARCHAR
);

COMMENT ON TABLE main.claims IS 'Numbers that guides on renting GPUs state, each with its document and place, in our own words and as operands. The verdicts are in claim_audit. No ranking reads this table.';
COMMENT ON COLUMN main.claims.claim_id IS 'Key: document, line and a letter.';
COMMENT ON COLUMN main.claims.document IS 'Short id of the document.';
COMMENT ON COLUMN main.claims.title IS 'What the document is, in English.';
COMMENT ON COLUMN main.claims.line IS 'Line of the document.';
COMMENT ON COLUMN main.claims.place IS 'Section or table of the document.';
COMMENT ON COLUMN main.claims.claim IS 'The claim in short.';
COMMENT ON COLUMN main.claims.kind IS 'price, memory, speed, time, cost, spec, saving, quality or arithmetic.';
COMMENT ON COLUMN main.claims.quantity IS 'What the number is: a column of gpus for a spec; memory_gb (enough to train), memory_used_gb, gpus_needed, tokens_per_second, hours, usd_for_tokens and so on.';
COMMENT ON COLUMN main.claims.value IS 'The claimed number, or the low end of a claimed range.';
COMMENT ON COLUMN main.claims.value_high IS 'High end of a claimed range; null for a single number.';
COMMENT ON COLUMN main.claims.or_more IS 'True where the claim allows any greater number; null elsewhere.';
COMMENT ON COLUMN main.claims.unit IS 'Unit of value. GB of GPU memory are the nominal ones of the card and count as GiB.';
COMMENT ON COLUMN main.claims.as_of IS 'Date of the document, or the middle of the month, half-year or year it names.';
COMMENT ON COLUMN main.claims.provider IS 'Whose price it is; null for the market.';
COMMENT ON COLUMN main.claims.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.claims.model IS 'Key into models; where the claim gives only a size, the Llama 2 (or Code Llama) of that size.';
COMMENT ON COLUMN main.claims.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.claims.quantization IS 'Form of the frozen weights where it is not 4 bits.';
COMMENT ON COLUMN main.claims.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.claims.gpu_count IS 'GPUs that the number is for; for a spec, GPUs of one board.';
COMMENT ON COLUMN main.claims.seq_len IS 'Tokens of one sequence, where the claim says so.';
COMMENT ON COLUMN main.claims.micro_batch IS 'Sequences per GPU, where the claim says so.';
COMMENT ON COLUMN main.claims.lora_rank IS 'Rank of the adapters, where the claim says so.';
COMMENT ON COLUMN main.claims.checkpointing IS 'Activation checkpointing, where the claim says so.';
COMMENT ON COLUMN main.claims.stack IS 'Training software, where the claim is about it.';
COMMENT ON COLUMN main.claims.training_precision IS 'Number format, where the claim is about it.';
COMMENT ON COLUMN main.claims.versus IS 'What a ratio or a saving is against: the one setting that differs, as setting=value.';
COMMENT ON COLUMN main.claims.tokens IS 'Operand: tokens trained.';
COMMENT ON COLUMN main.claims.tokens_per_second IS 'Operand: speed of all GPUs in tokens per second.';
COMMENT ON COLUMN main.claims.hours IS 'Operand: hours.';
COMMENT ON COLUMN main.claims.usd_per_hour IS 'Operand: USD per hour; per GPU where the claim is a cost of tokens.';
COMMENT ON COLUMN main.claims.formula IS 'How the number follows from the operands or terms.';
COMMENT ON COLUMN main.claims.terms IS 'The terms a, b, ... of the formula, as the document gives them, joined by semicolons.';
COMMENT ON COLUMN main.claims.tolerance IS 'Share by which a recomputed number may differ: rounding of the printed number, or more for an "about".';
COMMENT ON COLUMN main.claims.disagrees_with IS 'Claims about the same thing, joined by semicolons; whether they really differ is computed.';
