"""The data home: its paths, safe writing of files, and CSV files written by people."""
