"""Publications in a bucket: immutable objects, and one pointer to the newest publication."""
