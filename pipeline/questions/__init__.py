"""What a person asks: a job in, ranked and explained answers out."""
