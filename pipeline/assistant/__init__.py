"""Answers for assistants, over the Model Context Protocol: short, typed, and from the published file only."""
