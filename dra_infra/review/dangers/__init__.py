"""Dangers: changes by `pulumi up` to things that run, allowed, but to be known before merge.

`docs/review.md` shows each danger with an example; `dra_infra.review.reviews.find_dangers` asks every module for its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dra_infra.errors import Place
from dra_infra.kubernetes.api import ObjectRef


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Danger:
    """Something that works, and that a reviewer wants to know.

    Args:
        who: The object that it happens to.
        code: Stable slug from `dra_infra.codes.CODES`.
        message: What happens to it, as the rest of a sentence that starts with *who*.
        cause: The component or object whose change leads to it, where that is another one.
        hint: What to do about it.
        place: Where the user wrote the object, where that is known.
        level: `note` for what was played through to a good end: it is told, and neither counts nor closes the gate.
    """

    who: ObjectRef
    code: str
    message: str
    cause: str = ""
    hint: str = ""
    place: Place | None = field(default=None, compare=False)
    level: Literal["danger", "note"] = "danger"

    def __str__(self) -> str:
        because = f"{self.cause} changes: " if self.cause else ""
        return f"{because}{self.who} {self.message}"
