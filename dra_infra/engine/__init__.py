"""Runs a user program."""
