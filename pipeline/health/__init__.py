"""The state of every source, the morning's digest, and the doctor."""
