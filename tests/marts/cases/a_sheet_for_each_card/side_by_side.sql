SELECT fact, one_value, other_value
FROM compare_gpus('H1 SXM', 'rtx-9')
WHERE fact <> 'sheet_day'
