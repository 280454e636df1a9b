SELECT * FROM main.rentals WHERE gpu_count = 1
