"""The reviewed facts in catalog/, checked when they are loaded."""
