"""Questions that people ask: a job in, ranked and explained answers out."""
