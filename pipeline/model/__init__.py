"""The Python side of the fit and speed model: calibration, error bands and estimates for CSV files.

The formulas themselves are SQL macros in sql/model/; no formula is repeated here.
"""
