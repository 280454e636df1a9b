"""Days on disk: what was read of each source and day, what became of each attempt, and what went wrong."""
