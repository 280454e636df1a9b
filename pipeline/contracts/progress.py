"""How a long job reports where it is."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line of text for each step."""
