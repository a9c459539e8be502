"""Manifests as YAML: `yaml_text` writes them, `yaml_events` reads them, and this opens lists of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dra_infra.errors import Place, Problem, ProblemsError
from dra_infra.model.object_lines import are_lines, read_lines
from dra_infra.model.yaml_events import MAX_DEPTH, MAX_NODES, RefusedYamlError, read_documents
from dra_infra.model.yaml_text import order_keys, write_manifest, write_manifests

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "iterate_manifests",
    "objects_in",
    "order_keys",
    "read_manifests",
    "write_manifest",
    "write_manifests",
]

MAX_BYTES = 32 * 1024 * 1024
"""Longest text that is read; etcd refuses single objects far below this."""


def read_manifests(text: str, *, file: str = "") -> tuple[dict[str, Any], ...]:
    """Read every document that is an object; empty documents are passed over, `kind: List` is opened.

    Args:
        text: YAML or JSON.
        file: Name of the file for messages.

    Raises:
        ProblemsError: `yaml-syntax`, `yaml-duplicate-key`, `yaml-too-large`, or `yaml-not-an-object` for a document
            that is a list or a single value.
    """
    return tuple(iterate_manifests(text, file=file))


def iterate_manifests(text: str, *, file: str = "") -> Iterator[dict[str, Any]]:
    """The same, one by one; the error may come after objects."""
    try:
        yield from _manifests(text)
    except RefusedYamlError as error:
        place = Place(file=file, line=error.line) if file else None
        problem = Problem(
            path="document", code=error.code, message=error.message, hint=error.hint, place=place
        )
        raise ProblemsError([problem]) from error


def _manifests(text: str) -> Iterator[dict[str, Any]]:
    if are_lines(text):
        for line, value in read_lines(text):
            for _, found in objects_in(value, line=line):
                yield found
        return
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        raise RefusedYamlError("yaml-too-large", f"more than {limit} MiB of YAML", "split the file")
    for document in read_documents(text):
        for _, found in objects_in(document.data, line=document.first_line + 1):
            yield found


def objects_in(document: Any, *, line: int, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a document with their paths in it; lists of objects are opened.

    Raises:
        RefusedYamlError: `yaml-not-an-object`.
    """
    if document is None:
        return
    if not isinstance(document, dict):
        found = "list" if isinstance(document, list) else "single value"
        raise RefusedYamlError(
            "yaml-not-an-object",
            f"a document is a {found}, not an object",
            "start it with apiVersion and kind",
            line=line,
        )
    kind = document.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list):
        prefix = f"{path}." if path else ""
        item = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
        for index, each in enumerate(document["items"]):
            # The items of a typed list need not say what they are.
            whole = {**item, **each} if kind != "List" and isinstance(each, dict) else each
            yield from objects_in(whole, line=line, path=f"{prefix}items[{index}]")
        return
    yield path, document
