-- How does an L40S compare with an RTX 4090 in specifications, lowest prices and tokens per dollar?
SELECT fact, one_value AS l40s, other_value AS rtx_4090, meaning
FROM compare_gpus('l40s', 'rtx-4090')
