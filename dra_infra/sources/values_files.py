"""Values of charts in files, as helm merges them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.errors import Problem, ProgramError
from dra_infra.program.project_files import leads_out


def read_values(files: Iterable[Path], inside: Path | None = None) -> dict[str, Any]:
    """The values of some files, as helm merges them: the last one wins, mappings are merged.

    Args:
        files: Any.
        inside: The repository, which links among its files may not lead out of.

    Raises:
        ProgramError: `values-unreadable`.
    """
    merged: dict[str, Any] = {}
    for file in files:
        if inside is not None and leads_out(file, inside):
            raise ProgramError([_unreadable(file, "it is a link that leads out of the repository")])
        try:
            documents = [each.data for each in read_documents(file.read_text(encoding="utf-8"))]
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(
                [_unreadable(file, getattr(error, "strerror", None) or "it is not UTF-8")]
            ) from error
        except RefusedYamlError as error:
            raise ProgramError([_unreadable(file, f"line {error.line}: {error.message}")]) from error
        if len(documents) > 1 or not all(isinstance(each, dict | None) for each in documents):
            raise ProgramError([_unreadable(file, "it is not one mapping")])
        merged = _merge(merged, (documents or [None])[0] or {})
    return merged


def _unreadable(file: Path, why: str) -> Problem:
    return Problem(
        path="--values",
        code="values-unreadable",
        message=f"{file.name} cannot be read: {why}",
        hint="name a YAML file with values of the chart",
    )


def _merge(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for key, value in over.items():
        own = merged.get(key)
        merged[key] = _merge(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return merged
