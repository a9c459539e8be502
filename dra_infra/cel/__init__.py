"""CEL device selectors."""
