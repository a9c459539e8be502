"""Advice that the API server does not give: what it accepts, and what goes wrong later.

Every piece is a warning with a code and a hint that shows the corrected line. What is said of a driver comes from the
catalogue, for the releases that are pinned; of drivers that are not in it nothing is claimed.
"""
