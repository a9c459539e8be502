"""Parses expressions as the API server does: tokens, grammar, macros."""
