SELECT raw_label, gpu_count, is_undercut
FROM main.rentals
WHERE gpu_id = 'card'
