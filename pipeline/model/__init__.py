"""The fit and speed model's Python side: calibration, error bands and estimates of CSV files.

The formulas themselves are SQL macros in sql/model/; nothing here repeats one.
"""
