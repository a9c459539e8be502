"""Problems as data, and the one error tree.

Every finding of the product is a `Problem`; an exception carries all problems that were found, sorted, so that one
look fixes all. `codes.CODES` is the complete list of stable codes; `docs/errors` has a section for each and a
contract test compares both.

    DraInfraError
    ├── InvalidSpecError      a pure spec was given arguments that break rules
    ├── SelectorError         a Python selector was written in a way that would lose a clause or a type
    ├── ProgramError          the user's program raised, never ended, or could not be found
    ├── FleetError            a fleet could not be read
    ├── ForgeError            a forge did not take a comment
    ├── ClusterError          a live cluster could not be read
    ├── ScaffoldError         a new project was not laid out
    └── PluginError           the node plugin did not prepare or release a claim
"""

from __future__ import annotations

from dra_infra.kubernetes.problems import (
    DraInfraError,
    InvalidSpecError,
    Place,
    Problem,
    ProblemsError,
    Severity,
    in_reading_order,
)

__all__ = [
    "ClusterError",
    "DraInfraError",
    "FleetError",
    "ForgeError",
    "InvalidSpecError",
    "Place",
    "PluginError",
    "Problem",
    "ProblemsError",
    "ProgramError",
    "ScaffoldError",
    "SelectorError",
    "Severity",
    "in_reading_order",
]


class SelectorError(ProblemsError, TypeError):
    """A selector was written in a way that Python would silently change or that can never match."""

    def __init__(self, message: str, *, code: str, hint: str = "", path: str = "selector") -> None:
        super().__init__([Problem(path=path, code=code, message=message, hint=hint)])


class ProgramError(ProblemsError):
    """The user's program raised, never ended, or could not be found; `place` is the user's line."""


class FleetError(ProblemsError):
    """A fleet could not be read."""


class ForgeError(ProblemsError):
    """A comment could not be posted or brought up to date; no message holds a secret."""


class ClusterError(ProblemsError):
    """A live cluster could not be read; no message holds a credential."""


class ScaffoldError(ProblemsError):
    """A new project was not laid out; its folder is as it was."""


class PluginError(ProblemsError):
    """The node plugin did not prepare or release a claim, or cannot keep its files."""
