CREATE TABLE main.model_bands (
    calibration VARCHAR NOT NULL,
    quantity VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    gpu_class VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL,
    low_ratio DOUBLE NOT NULL,
    high_ratio DOUBLE NOT NULL,
    runs INTEGER NOT NULL
);

COMMENT ON TABLE main.model_bands IS 'How far held-out measurements were from the model: the band from p10 to p90, as ratios of measured to predicted.';
COMMENT ON COLUMN main.model_bands.calibration IS 'all: what answers use; without FAMILY: made without that family of sources, for measuring the error; split: as all.';
COMMENT ON COLUMN main.model_bands.quantity IS 'memory or speed.';
COMMENT ON COLUMN main.model_bands.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.model_bands.gpu_class IS 'Class of GPUs.';
COMMENT ON COLUMN main.model_bands.evidence IS 'Distance from the measurements: measured, traced (memory only), interpolated or extrapolated.';
COMMENT ON COLUMN main.model_bands.low_ratio IS 'p10 of measured over predicted.';
COMMENT ON COLUMN main.model_bands.high_ratio IS 'p90 of measured over predicted.';
COMMENT ON COLUMN main.model_bands.runs IS 'Held-out runs behind the band; a group of few families of sources is shrunk towards its parent group.';
