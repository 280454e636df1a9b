"""Checks on a reading: it is accepted, refused, or accepted without the prices that are held."""
