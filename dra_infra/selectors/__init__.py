"""Selectors in Python: comparisons of attributes and capacities that compile to CEL.

The CEL that they write never blocks scheduling: what it reads, it asks for first.
"""
