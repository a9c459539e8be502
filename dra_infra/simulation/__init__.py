"""Where pods fit."""
