"""Intent to objects."""
