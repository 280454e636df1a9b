"""Writes what is published for other tools: each export is a folder with a data package that describes it."""
