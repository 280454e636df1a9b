-- What the user's own measured runs say about an estimate, and how much of its band remains.

CREATE OR REPLACE MACRO own_run_parameters() AS {
    'noise': 0.7e0, 'least_likeness': 0.05e0, 'near_likeness': 0.5e0, 'most_runs': 40, 'most_factor': 3e0,
    'memory': {
        'params': 1e0, 'seq_len': 0e0, 'micro_batch': 0e0, 'method': 4e0, 'stack': 2e0, 'gpu': 1.5e0,
        'checkpointing': 1.5e0, 'sharding': 3e0, 'optimizer': 1e0, 'training_precision': 0.7e0
    },
    'speed': {
        'params': 1e0, 'seq_len': 1.5e0, 'micro_batch': 0.4e0, 'method': 1e0, 'stack': 0.5e0, 'gpu': 1.5e0,
        'checkpointing': 0.5e0, 'sharding': 0.75e0, 'optimizer': 0.5e0, 'training_precision': 0.7e0
    }
};
COMMENT ON FUNCTION own_run_parameters IS
    'How far the user''s own runs reach. memory and speed: how far apart two runs are that differ in a setting, or by a factor of e in the parameters of the model, the sequence length or the micro-batch (see likeness). noise: the variance of a single measurement, as a share of the variance of the model''s errors. least_likeness: an estimate is corrected if some own run is at least so like it; near_likeness: its evidence is then own if one is so like it. most_runs: of more runs of different settings, the newest count, since a correction takes time with the square of their number. most_factor: a measurement further from its estimate corrects nothing, since it is probably in another unit (assumed; few published runs are further off than 2). The parameters are rounded values at which the trial in docs/explanation/own-runs-trial.md did well, where halving or doubling any of them changes little. A correction of memory carries over to other lengths and micro-batches as it is, so that more tokens never need less. Errors hardly carry over from card to card, nor those of memory from method to method.';

CREATE OR REPLACE MACRO settings_apart(quantity) AS
    CASE quantity WHEN 'memory' THEN own_run_parameters().memory ELSE own_run_parameters().speed END;
COMMENT ON FUNCTION settings_apart IS 'The distances of settings in own_run_parameters for memory or speed.';

CREATE OR REPLACE MACRO likeness(one, other, apart) AS
    exp(-(
        pow(apart.params * ln(one.params_total / other.params_total), 2)
        + pow(apart.seq_len * ln(one.seq_len / other.seq_len), 2)
        + pow(apart.micro_batch * ln(one.micro_batch / other.micro_batch), 2)
        + CASE WHEN one.method = other.method THEN 0 ELSE pow(apart.method, 2) END
        + CASE WHEN one.stack = other.stack THEN 0 ELSE pow(apart.stack, 2) END
        + CASE WHEN one.gpu_id = other.gpu_id THEN 0 ELSE pow(apart.gpu, 2) END
        + CASE WHEN one.checkpointing = other.checkpointing THEN 0 ELSE pow(apart.checkpointing, 2) END
        + CASE WHEN one.sharding = other.sharding THEN 0 ELSE pow(apart.sharding, 2) END
        + CASE WHEN one.optimizer = other.optimizer THEN 0 ELSE pow(apart.optimizer, 2) END
        + CASE WHEN one.training_precision = other.training_precision THEN 0
            ELSE pow(apart.training_precision, 2) END
    ));
COMMENT ON FUNCTION likeness IS
    'How like two runs are, from 0 to 1: the correlation of the model''s errors on the two (a Gaussian kernel). one and other: structs or rows with the settings in own_corrections. apart: settings_apart of the quantity.';

CREATE OR REPLACE MACRO like_settings(run) AS {
    'params_total': run.params_total, 'seq_len': run.seq_len, 'micro_batch': run.micro_batch,
    'method': CASE run.method WHEN 'pretrain' THEN 'full' ELSE run.method END, 'stack': run.stack,
    'gpu_id': run.gpu, 'checkpointing': run.checkpointing, 'sharding': run.sharding,
    'optimizer': replace(run.optimizer, '_fused', ''), 'training_precision': run.training_precision
};
COMMENT ON FUNCTION like_settings IS
    'The settings of a run that likeness compares; a fused optimizer keeps the same state as one that is not. run: a row of settings_of.';

CREATE OR REPLACE MACRO own_runs_of(wanted, with_own := TRUE) AS TABLE
SELECT
    list(c ORDER BY c.position) AS own_runs,
    list(c.weight ORDER BY c.position) AS own_weights,
    list(c.precisions ORDER BY c.position) AS own_precisions
FROM main.own_corrections AS c
WHERE c.quantity = wanted AND with_own;
COMMENT ON MACRO TABLE own_runs_of IS
    'The own runs of a wanted quantity (memory or speed) as lists in one row, null if there are none, or with_own is false.';

-- Lists of one item name a value that is used several times, which costs less than a further SELECT.
CREATE OR REPLACE MACRO own_likenesses(runs, settings, apart) AS
    list_transform([settings], lambda one: list_transform(runs, lambda run: likeness(run, one, apart)))[1];
COMMENT ON FUNCTION own_likenesses IS
    'The likenesses of a run with these settings (like_settings) to each own run; null if there are none.';

CREATE OR REPLACE MACRO own_correction(likenesses, weights, precisions) AS
    list_transform([likenesses], lambda known: CASE
        WHEN list_max(known) >= own_run_parameters().least_likeness THEN {
            'factor': exp(list_dot_product(known, weights)),
            'spread': sqrt(greatest(0e0, 1 - list_dot_product(known, list_transform(
                precisions, lambda line: list_dot_product(line, known)
            )) + own_run_parameters().noise) / (1 + own_run_parameters().noise)),
            'runs': len(list_filter(known, lambda each: each >= own_run_parameters().least_likeness)),
            'is_near': list_max(known) >= own_run_parameters().near_likeness
        }
    END)[1];
COMMENT ON FUNCTION own_correction IS
    'What own runs say about an estimate: the factor by which it is corrected, the spread of its errors that remains (1 if the runs say nothing), the number of runs behind it, and is_near if the evidence is own; null if no run is like it. This is the mean and the standard deviation of a Gaussian process for ln(measured / estimated), whose prior mean is 0: the model itself. Runs that ran out of memory can raise the factor, but leave the spread as it is. likenesses: of the estimate to each run; weights and precisions: columns of own_corrections.';

CREATE OR REPLACE MACRO with_own_runs(terms, with_own := TRUE) AS TABLE
SELECT
    t.*,
    own_correction(
        own_likenesses(m.own_runs, like_settings(t), settings_apart('memory')), m.own_weights,
        m.own_precisions
    ) AS own_memory,
    own_correction(
        own_likenesses(s.own_runs, like_settings(t), settings_apart('speed')), s.own_weights, s.own_precisions
    ) AS own_speed
FROM query_table(terms) AS t
CROSS JOIN own_runs_of('memory', with_own := with_own) AS m
CROSS JOIN own_runs_of('speed', with_own := with_own) AS s;
COMMENT ON MACRO TABLE with_own_runs IS
    'The rows of memory_terms or speed_terms with the corrections of memory and speed from own runs, own_memory and own_speed (own_correction); null where there is none. The terms remain the model''s.';

CREATE OR REPLACE MACRO own_factor(own) AS coalesce(own.factor, 1e0);
COMMENT ON FUNCTION own_factor IS 'The factor of an own_correction, 1 if there is none.';

CREATE OR REPLACE MACRO narrowed(ratio, own) AS
    CASE WHEN own IS NULL THEN ratio ELSE pow(ratio, own.spread) END;
COMMENT ON FUNCTION narrowed IS
    'An end of a band (low_ratio or high_ratio) around an estimate that own runs corrected: nearer by the spread of the errors that remains.';

CREATE OR REPLACE MACRO own_evidence(evidence, own) AS
    CASE WHEN coalesce(own.is_near, FALSE) THEN 'own' ELSE evidence END;
COMMENT ON FUNCTION own_evidence IS 'The evidence for an estimate: own if an own run is near it, otherwise as given.';

CREATE OR REPLACE MACRO own_members(own_memory, own_speed) AS
    nullif(concat_ws(',',
        json_member('own_memory_factor', round(own_memory.factor, 4)),
        json_member('own_memory_runs', own_memory.runs),
        json_member('own_speed_factor', round(own_speed.factor, 4)),
        json_member('own_speed_runs', own_speed.runs)
    ), '');
COMMENT ON FUNCTION own_members IS
    'The corrections from own runs as members of assumptions: the factors, and the numbers of runs behind them. Null without any.';

CREATE OR REPLACE MACRO own_memory_factor(assumptions) AS
    coalesce(try_cast(regexp_extract(assumptions, '"own_memory_factor":([0-9.e-]+)', 1) AS DOUBLE), 1e0);
COMMENT ON FUNCTION own_memory_factor IS
    'The factor by which own runs corrected the memory of a plan, to four digits, from its assumptions (own_members); 1 if none did.';

CREATE OR REPLACE MACRO is_own_corrected(assumptions) AS coalesce(contains(assumptions, '"own_'), FALSE);
COMMENT ON FUNCTION is_own_corrected IS 'True if own runs corrected a plan, according to its assumptions (own_members).';
