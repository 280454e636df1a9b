"""Exports published data for other tools: each export is a folder, described by a data package."""
