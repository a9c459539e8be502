"""What changed upstream, by module of ours: declarations that differ between two releases."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api.patches import PATCH_ROWS
from tools.upstream.declarations import find_declarations, without_comments
from tools.upstream.modules import Sources
from tools.upstream.ported import PortedModule, UpstreamFile

_CONTEXT: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedDeclaration:
    """A declaration that differs.

    Args:
        file: Where it is.
        name: Its name; empty for a file that only one of the releases has.
        before: Its text in the older release; empty where that has none.
        after: Its text in the newer release.
    """

    file: UpstreamFile
    name: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), n=_CONTEXT, lineterm=""
        )
        return "\n".join(list(lines)[2:])


def find_changes(module: PortedModule, older: Sources, newer: Sources) -> Iterator[ChangedDeclaration]:
    """Yield what changed in the upstream sources of a module; comments and alignment do not count.

    Raises:
        FileNotFoundError: When sources are not here and may not be fetched.
        ToolError: When the module proxy refuses them.
    """
    for file in module.files:
        before, after = (_read(file, each) for each in (older, newer))
        for name in file.names or sorted(before.keys() | after.keys()):
            texts = before.get(name, ""), after.get(name, "")
            if without_comments(texts[0]) != without_comments(texts[1]):
                yield ChangedDeclaration(file=file, name=name, before=texts[0], after=texts[1])


def find_missing(module: PortedModule, sources: Sources, minor: int) -> Iterator[str]:
    """Yield the files and names that a module says it is ported from, and that a release does not have.

    Raises:
        FileNotFoundError: When sources are not here and may not be fetched.
    """
    for file in module.files:
        if file.until is not None and file.until < minor:
            continue
        text = sources.read(file.module, file.path)
        if text is None:
            yield f"{module.name}: {file.text}"
            continue
        known = find_declarations(text)
        yield from (f"{module.name}: {name} of {file.text}" for name in file.names if name not in known)


def find_rows(module: PortedModule, change: ChangedDeclaration) -> Iterator[str]:
    """Yield the places of ours that a change touches: lines of the module that name it, and rows of the table of patches."""
    name = change.name.rpartition(".")[2]
    if name:
        word = re.compile(rf"\b{re.escape(name)}\b")
        for number, line in enumerate(module.path.read_text().splitlines(), 1):
            if word.search(line):
                yield f"dra_infra/kubernetes/{module.name}:{number}: {line.strip()}"
    for behaviour, row in PATCH_ROWS.items():
        if change.file.text in row.files:
            yield f"dra_infra/kubernetes/api/patches.py: {behaviour.name}"


def _read(file: UpstreamFile, sources: Sources) -> dict[str, str]:
    text = sources.read(file.module, file.path)
    return dict(find_declarations(text)) if text is not None else {}
