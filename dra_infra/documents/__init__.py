"""YAML and JSON documents: read within bounds, with the place of each field, and written in one right spelling."""
