"""One day's work: capture, read into the record, publish."""
