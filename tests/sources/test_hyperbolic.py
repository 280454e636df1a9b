"""Hyperbolic's options: cents of the whole option, its supplier's price, and options of several machines."""

from tests.sources.edited_pages import sample_row

OPTION = sample_row("hyperbolic", "rental_options.json", 3)
