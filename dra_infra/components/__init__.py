"""Pulumi component resources."""
