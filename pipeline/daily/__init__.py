"""The daily job: capture, read into the record, publish; and the state of every source."""
