"""Nosana: what a renter pays for a market, and how many GPUs that buys."""

from tests.sources.edited_pages import sample_row

MARKET = sample_row("nosana", "markets.json", 1)
"""The market of the RTX 3060, which is an ordinary one."""
