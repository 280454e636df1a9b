"""Dagster's view of the daily job. Only this room imports dagster; the other rooms do the work."""
