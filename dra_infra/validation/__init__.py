"""Rules over the objects of a program: what the API server would refuse, and what it should have warned about.

This is the first cut: the rules that hand-written claims and pods most often break. Components are checked by
`specs` in the user's own terms before an object exists; everything here speaks of objects and field paths.
"""

from dra_infra.validation.program import check_program

__all__ = ["check_program"]
