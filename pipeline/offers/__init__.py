"""From a listing to an offer: which GPU, how many, how many dollars per hour."""
