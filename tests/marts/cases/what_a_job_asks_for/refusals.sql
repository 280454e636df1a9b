FROM checked_jobs('refused')
