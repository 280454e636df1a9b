CREATE TABLE main.model_constants (
    calibration VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    value DOUBLE NOT NULL
);

COMMENT ON TABLE main.model_constants IS 'The constants of the memory and speed model, written by the calibration only.';
COMMENT ON COLUMN main.model_constants.calibration IS 'Which calibration: answers use all; without FAMILY was fitted without that family of sources, and split on one half of the runs, so that held-out errors come from the same macros.';
COMMENT ON COLUMN main.model_constants.name IS 'Name of the constant; the macro constants lists them.';
COMMENT ON COLUMN main.model_constants.value IS 'Its value, in the unit of its name; otherwise a ratio.';
