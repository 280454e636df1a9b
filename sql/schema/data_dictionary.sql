CREATE TABLE main.data_dictionary (
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('table', 'column', 'macro')),
    column_name VARCHAR,
    data_type VARCHAR,
    description VARCHAR
);

COMMENT ON TABLE main.data_dictionary IS 'The meaning of every table, column and macro of this file, from their comments.';
COMMENT ON COLUMN main.data_dictionary.name IS 'Table or macro.';
COMMENT ON COLUMN main.data_dictionary.kind IS 'table, column or macro.';
COMMENT ON COLUMN main.data_dictionary.column_name IS 'Column of the table; null for tables and macros.';
COMMENT ON COLUMN main.data_dictionary.data_type IS 'Type of the column; the parameters of a macro.';
COMMENT ON COLUMN main.data_dictionary.description IS 'Meaning, with units.';
