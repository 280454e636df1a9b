-- An L40S against an RTX 4090: facts, cheapest prices and tokens per dollar side by side.
SELECT fact, one_value AS l40s, other_value AS rtx_4090, meaning
FROM compare_gpus('l40s', 'rtx-4090')
