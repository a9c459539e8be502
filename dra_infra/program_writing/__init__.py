"""Writes Pulumi programs from objects: components where they say the same, and plain objects for all the rest."""
