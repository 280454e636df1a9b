SELECT table_name AS name, 'table' AS kind, NULL AS column_name, NULL AS data_type, comment AS description
FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = 'main'
UNION ALL
SELECT table_name, 'column', column_name, data_type, comment
FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal
UNION ALL
SELECT function_name, 'macro', NULL, array_to_string(parameters, ', '), comment
FROM duckdb_functions()
WHERE database_name = current_database() AND function_type IN ('macro', 'table_macro') AND NOT internal
ORDER BY kind DESC, name, column_name
