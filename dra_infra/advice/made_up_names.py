"""Names that Pulumi makes up, written out for rules: `train-*` is judged as the `train-00000000` that it will be like.

No valid name holds a `*`: one that no annotation of Pulumi's explains is refused as the server refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import as_placeholder
from dra_infra.markers import is_name_made_up

_MADE_UP: Final = re.compile(r"(?P<stem>[^\s/\"'`]+)-\*(?:-(?P<digits>[0-9a-f]{8}))?")
_WRITTEN: Final = re.compile(r"[^\s/\"'`]+-[0-9a-f]{8}")
_DIGITS: Final = "00000000"


class WrittenNames:
    """Manifests in which each name that Pulumi makes up is one that it could be."""

    def __init__(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        names = {str(each["metadata"]["name"]) for each in manifests if is_name_made_up(each)}
        self._written = {name: _MADE_UP.sub(_write, name) for name in names}
        self._shown = {written: name for name, written in self._written.items()}
        self.manifests = [self._write_in(each) for each in manifests] if names else manifests

    def _write_in(self, value: Any) -> Any:
        if isinstance(value, str):
            return as_placeholder(value, _MADE_UP.sub(self._written_for, value)) if "*" in value else value
        if isinstance(value, Mapping):
            return {self._write_in(key): self._write_in(item) for key, item in value.items()}
        return [self._write_in(item) for item in value] if isinstance(value, list) else value

    def _written_for(self, found: re.Match[str]) -> str:
        return self._written.get(found[0], found[0])

    def shown(self, problem: Problem) -> Problem:
        """*problem* with the names as the program's objects are called."""
        if not self._shown:
            return problem
        path, message, hint = (
            _WRITTEN.sub(lambda found: self._shown.get(found[0], found[0]), text)
            for text in (problem.path, problem.message, problem.hint)
        )
        return replace(problem, path=path, message=message, hint=hint)


def _write(found: re.Match[str]) -> str:
    return f"{found['stem']}-{found['digits'] or _DIGITS}"
