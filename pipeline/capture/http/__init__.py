"""A polite and wary HTTP client."""
