"""The record in a DuckLake, which several machines write and each can read."""
