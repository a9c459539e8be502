"""Speed beside the alternatives: whole processes, in turns, medians. `make bench`; never a timed test."""
