"""The reviewed facts of catalog/, checked when they are loaded."""
