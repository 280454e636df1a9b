"""Dagster's view of the daily job. The only room that imports dagster; the work is done in the others."""
