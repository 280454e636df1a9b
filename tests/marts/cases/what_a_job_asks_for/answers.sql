FROM cheapest_published('asked')
