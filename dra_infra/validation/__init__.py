"""What an API server of the target refuses, and what it should have warned about.

Components are checked by `specs` in the user's own terms before an object exists; everything here speaks of objects
and field paths. `judge` is the verdict of one server, `validate` that of all servers of a target with advice.
"""

from dra_infra.validation.objects import check_object, check_objects, validate
from dra_infra.validation.program import check_program
from dra_infra.validation.verdict import Verdict, judge

__all__ = ["Verdict", "check_object", "check_objects", "check_program", "judge", "validate"]
