-- Which memory do the traces of measured runs show, phase by phase?
SELECT
    run_id, recipe, forward_allocated_bytes, backward_allocated_bytes, optimizer_allocated_bytes,
    reserved_bytes
FROM traced_runs
WHERE problem IS NULL
ORDER BY run_id
LIMIT 20
