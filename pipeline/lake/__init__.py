"""The record in a DuckLake that several machines write to and read from."""
