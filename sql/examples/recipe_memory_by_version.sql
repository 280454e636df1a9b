-- How did the memory of a training step change from one version of its libraries to the next?
SELECT recipe, model, phase, versions, allocated_bytes / 1073741824 AS allocated_gib,
    allocated_bytes / lag(allocated_bytes) OVER by_version - 1 AS change
FROM recipe_memory_by_version
WINDOW by_version AS (
    PARTITION BY recipe, model, layers, micro_batch, seq_len, phase
    ORDER BY try_cast(string_split(regexp_extract(versions, 'transformers ([0-9.]+)', 1), '.') AS INTEGER[])
)
ORDER BY abs(change) DESC NULLS LAST, recipe, model, phase, versions
