"""The record in a DuckLake: days of sources that several machines append, and each can read.

A lake's catalogue is in PostgreSQL, its data are Parquet files in a folder or an object store. The record
stays files in each home: what is captured is pushed from there, and pulled into another.
"""
