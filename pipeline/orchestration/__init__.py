"""Dagster's view of the daily job. Only this package imports dagster; the other packages do the work."""
