"""Requests to the API server: reading claims, comparing them with what is prepared, and binding conditions."""
