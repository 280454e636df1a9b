"""The data home: its paths, writing files safely, and CSV files that people write."""
