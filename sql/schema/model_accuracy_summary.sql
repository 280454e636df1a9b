CREATE TABLE main.model_accuracy_summary (
    quantity VARCHAR NOT NULL,
    grouped_by VARCHAR NOT NULL,
    "group" VARCHAR,
    runs INTEGER NOT NULL,
    sources INTEGER,
    families INTEGER,
    stranger_median_error DOUBLE,
    stranger_mean_error DOUBLE,
    stranger_share_in_band DOUBLE,
    median_error DOUBLE,
    mean_error DOUBLE,
    median_error_held_out DOUBLE,
    mean_error_held_out DOUBLE,
    bias_held_out DOUBLE,
    median_error_split DOUBLE,
    mean_error_split DOUBLE,
    share_in_band DOUBLE,
    died INTEGER,
    died_as_predicted INTEGER,
    ran INTEGER,
    ran_as_predicted INTEGER,
    balanced_accuracy DOUBLE
);

COMMENT ON TABLE main.model_accuracy_summary IS 'model_accuracy in groups: by family, source, method, GPU, model size, stack and distance from the data.';
COMMENT ON COLUMN main.model_accuracy_summary.quantity IS 'memory or speed.';
COMMENT ON COLUMN main.model_accuracy_summary.grouped_by IS 'all, family, source, method, gpu, model size, stack or evidence.';
COMMENT ON COLUMN main.model_accuracy_summary."group" IS 'The group.';
COMMENT ON COLUMN main.model_accuracy_summary.runs IS 'Measured runs in it.';
COMMENT ON COLUMN main.model_accuracy_summary.sources IS 'Sources that they are from.';
COMMENT ON COLUMN main.model_accuracy_summary.families IS 'Families of those sources: held out together.';
COMMENT ON COLUMN main.model_accuracy_summary.stranger_median_error IS 'What somebody meets whose runs are of no family that the model has seen: the median absolute relative error of each source, its family held out; the mean over sources.';
COMMENT ON COLUMN main.model_accuracy_summary.stranger_mean_error IS 'The same of the mean error of each source.';
COMMENT ON COLUMN main.model_accuracy_summary.stranger_share_in_band IS 'Share of measurements inside bands made without their family; the mean over families.';
COMMENT ON COLUMN main.model_accuracy_summary.median_error IS 'Median absolute relative error in sample.';
COMMENT ON COLUMN main.model_accuracy_summary.mean_error IS 'Mean absolute relative error in sample.';
COMMENT ON COLUMN main.model_accuracy_summary.median_error_held_out IS 'Median absolute relative error with the run''s family of sources held out.';
COMMENT ON COLUMN main.model_accuracy_summary.mean_error_held_out IS 'Mean absolute relative error with the run''s family of sources held out.';
COMMENT ON COLUMN main.model_accuracy_summary.bias_held_out IS 'Median signed relative error with the run''s family of sources held out.';
COMMENT ON COLUMN main.model_accuracy_summary.median_error_split IS 'Median absolute relative error on the test half of the fixed split.';
COMMENT ON COLUMN main.model_accuracy_summary.mean_error_split IS 'Mean absolute relative error on the test half of the fixed split.';
COMMENT ON COLUMN main.model_accuracy_summary.share_in_band IS 'Share of held-out runs inside the band from p10 to p90.';
COMMENT ON COLUMN main.model_accuracy_summary.died IS 'Runs that failed out of memory.';
COMMENT ON COLUMN main.model_accuracy_summary.died_as_predicted IS 'Those of them that the held-out model predicts do not fit.';
COMMENT ON COLUMN main.model_accuracy_summary.ran IS 'Runs that did not fail.';
COMMENT ON COLUMN main.model_accuracy_summary.ran_as_predicted IS 'Those of them that the held-out model predicts fit.';
COMMENT ON COLUMN main.model_accuracy_summary.balanced_accuracy IS 'Mean of the two shares.';
