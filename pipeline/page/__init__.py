"""The report: one page that opens from disk, made from the published file."""
