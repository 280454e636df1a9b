"""Exports published data for other tools: each export is a folder with a data package descriptor."""
