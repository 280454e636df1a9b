-- The distance of an estimate from measurements, and the width of the estimate's band.

CREATE OR REPLACE MACRO gpu_class(vendor, architecture, segment, form_factor) AS
    CASE
        WHEN vendor <> 'nvidia' THEN 'other vendor'
        WHEN architecture LIKE 'Blackwell%' THEN 'blackwell'
        WHEN architecture IN ('Hopper', 'Ampere') AND form_factor = 'SXM' THEN 'hopper and a100 sxm'
        WHEN architecture IN ('Kepler', 'Maxwell', 'Pascal', 'Volta', 'Turing') THEN 'before ampere'
        WHEN segment = 'consumer' THEN 'consumer'
        ELSE 'pcie'
    END;
COMMENT ON FUNCTION gpu_class IS
    'The class of a GPU, for error bands: the cards of a class are alike in form factor, cooling and generation.';

CREATE OR REPLACE MACRO log_distance(one, other) AS abs(ln(one / other));
COMMENT ON FUNCTION log_distance IS 'The logarithm of the ratio of two numbers, the larger over the smaller.';

CREATE OR REPLACE MACRO weight_form(method, quantization) AS
    CASE
        WHEN method <> 'qlora' THEN 'whole'
        WHEN coalesce(quantization, 'nf4') IN ('none', 'nf4dq') THEN 'nf4'
        ELSE coalesce(quantization, 'nf4')
    END;
COMMENT ON FUNCTION weight_form IS
    'The form of the frozen weights, as used to compare runs; double quantization makes no difference.';

CREATE OR REPLACE MACRO evidence_reach() AS {
    'params_measured': 1.1e0, 'tokens_measured': 2.01e0,
    'params_interpolated': 3e0, 'tokens_interpolated': 8.01e0
};
COMMENT ON FUNCTION evidence_reach IS
    'The largest ratios, in either direction, of parameters and of tokens at which a run counts as measured or interpolated by comparison with a measured run. Tokens are those of a sequence and, for measured, also those of a micro-batch. Held-out errors grow beyond a ratio of 3 in parameters; the other ratios are assumed, including 2 and 8 for tokens; 0.01 is added to these two because lengths are rounded.';

CREATE OR REPLACE MACRO evidence_of(needs) AS TABLE
WITH _evidence_runs AS (
    SELECT
        s.family, CASE r.method WHEN 'pretrain' THEN 'full' ELSE r.method END AS method,
        r.gpu, g.architecture, gpu_class(g.vendor, g.architecture, g.segment, g.form_factor) AS class,
        m.params_total::DOUBLE AS params, m.experts > 1 AS is_mixture, r.gpu_count, r.stack, r.seq_len,
        weight_form(r.method, r.quantization) AS weight_form,
        r.checkpointing, r.training_precision, r.micro_batch * r.seq_len AS micro_step_tokens,
        min(r.run_id) AS run_id
    FROM main.measured_runs AS r
    JOIN main.measured_sources AS s ON s.source = r.source
    JOIN main.models AS m ON m.model = r.model
    JOIN main.gpus AS g ON g.gpu_id = r.gpu
    -- A loop over packed sequences slows a run many times: it says nothing of runs without one.
    WHERE r.measured_tokens_per_second_per_gpu IS NOT NULL AND r.looped_sequences IS NULL
    GROUP BY ALL
),

_evidence_needs AS (
    SELECT DISTINCT
        n.calibration, n.gpu, n.method, n.params_total::DOUBLE AS params, n.experts > 1 AS is_mixture,
        n.gpu_count::DOUBLE AS gpu_count, n.stack, n.seq_len::DOUBLE AS seq_len,
        weight_form(n.method, n.quantization) AS weight_form,
        g.architecture, gpu_class(g.vendor, g.architecture, g.segment, g.form_factor) AS class,
        n.gpu IN (
            SELECT r.gpu FROM _evidence_runs AS r WHERE n.calibration <> 'without ' || r.family
        ) AS is_measured_card,
        g.peer_to_peer
    FROM query_table(needs) AS n
    JOIN main.gpus AS g ON g.gpu_id = n.gpu
)

-- Held-out errors, as medians over families, are larger beyond 3 x the parameters (18% instead of 12%), for
-- unmeasured classes of GPU (22% instead of 14%) and for mixtures of experts (27% instead of 17%).
-- Whether the stack was measured matters little.
SELECT
    n.calibration, n.gpu, n.method, n.params, n.is_mixture, n.gpu_count, n.stack, n.seq_len,
    n.weight_form, n.class,
    coalesce(bool_or(
        n.is_measured_card
        AND log_distance(r.params, n.params) <= ln(evidence_reach().params_interpolated)
        AND log_distance(r.seq_len, n.seq_len) <= ln(evidence_reach().tokens_interpolated)
        -- Cards without peer access share host memory, so a few cards say little about many.
        AND (n.peer_to_peer OR n.gpu_count <= 2 * r.gpu_count)
    ), FALSE) AS is_near,
    list({
        'distance': log_distance(r.params, n.params), 'run_id': r.run_id, 'checkpointing': r.checkpointing,
        'training_precision': r.training_precision, 'micro_step_tokens': r.micro_step_tokens
    }) FILTER (
        r.gpu = n.gpu AND r.stack = n.stack AND r.gpu_count = n.gpu_count AND r.weight_form = n.weight_form
        AND log_distance(r.params, n.params) <= ln(evidence_reach().params_measured)
        AND log_distance(r.seq_len, n.seq_len) <= ln(evidence_reach().tokens_measured)
    ) AS like_runs
FROM _evidence_needs AS n
LEFT JOIN _evidence_runs AS r
    ON r.method = CASE n.method WHEN 'pretrain' THEN 'full' ELSE n.method END
    AND r.architecture = n.architecture AND r.class = n.class AND r.is_mixture = n.is_mixture
    -- Runs of a family that is held out of a fit do not count as evidence for that fit either.
    AND n.calibration <> 'without ' || r.family
GROUP BY ALL;
COMMENT ON MACRO TABLE evidence_of IS
    'The published measurements of speed that are near a job on a card. is_near: a run has the same method and a GPU of the same class and generation, either both models or neither is a mixture of experts, and the run is within 3 x the parameters and 8 x the sequence length; if the GPUs cannot access each other''s memory, there may be at most twice as many of them as in the run; and the GPU itself was measured in some run. like_runs: the runs with the same GPU, number of GPUs, method, stack and form of the weights, within 1.1 x the parameters and 2 x the sequence length, each with the settings that measured_run compares.';

CREATE OR REPLACE MACRO measured_run(like_runs, settings) AS
    list_min(list_filter(like_runs, lambda run:
        run.checkpointing = settings.checkpointing
        AND run.training_precision = settings.training_precision
        AND log_distance(run.micro_step_tokens, settings.micro_batch * settings.seq_len)
            <= ln(evidence_reach().tokens_measured)
    )).run_id;
COMMENT ON FUNCTION measured_run IS
    'The run among like_runs (evidence_of) that measured these settings (a struct or row), null if none did: it has the same checkpointing and training precision, and a micro-batch of at most twice or at least half as many tokens. A run that leaves one of these open measured none.';

CREATE OR REPLACE MACRO speed_evidence(terms) AS TABLE
SELECT
    t.*, e.class, measured_run(e.like_runs, t) AS evidence_run,
    CASE WHEN evidence_run IS NOT NULL THEN 'measured' WHEN e.is_near THEN 'interpolated' ELSE 'extrapolated'
    END AS evidence
FROM query_table(terms) AS t
JOIN evidence_of(terms) AS e
    ON e.calibration = t.calibration AND e.gpu = t.gpu AND e.method = t.method
    AND e.params = t.params_total AND e.gpu_count = t.gpu_count AND e.stack = t.stack
    AND e.seq_len = t.seq_len AND e.is_mixture = (t.experts > 1)
    AND e.weight_form = weight_form(t.method, t.quantization);
COMMENT ON MACRO TABLE speed_evidence IS
    'Estimates of speed with the class of the GPU and the evidence for each estimate. measured: a published run measured these settings on this GPU (evidence_run names it; see measured_run). interpolated: a published run is near (evidence_of). extrapolated: none is.';

CREATE OR REPLACE MACRO memory_evidence(terms) AS TABLE
SELECT
    *, 'any' AS class, CASE WHEN is_proven THEN 'traced' ELSE 'formulas' END AS evidence
FROM query_table(terms);
COMMENT ON MACRO TABLE memory_evidence IS
    'Estimates of memory with the evidence for each estimate: traced if it comes from traces of a recipe that measured runs confirm, otherwise formulas. Memory does not depend on the card, so all cards are one class; and held-out errors were no smaller near measured runs than far from them.';

CREATE OR REPLACE MACRO with_band(judged, quantity) AS TABLE
SELECT t.*, b.low_ratio, b.high_ratio
FROM query_table(judged) AS t
JOIN main.model_bands AS b
    ON b.calibration = t.calibration AND b.quantity = quantity AND b.method = t.method
    AND b.gpu_class = t.class AND b.evidence = t.evidence;
COMMENT ON MACRO TABLE with_band IS
    'The rows of memory_evidence or speed_evidence with the band of held-out errors of the quantity (memory or speed): the ratio of measured to estimated values at p10 (low_ratio) and p90 (high_ratio).';
