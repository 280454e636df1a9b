"""What is published, in a bucket: immutable objects, and one pointer to the newest publication."""
