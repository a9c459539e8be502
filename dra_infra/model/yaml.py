"""Manifests as YAML: `yaml_text` writes them, and this reads them and keeps to plain JSON data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import yaml

from dra_infra.errors import Place, Problem, ProblemsError
from dra_infra.model.yaml_text import order_keys, write_manifest, write_manifests

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "order_keys",
    "read_manifests",
    "write_manifest",
    "write_manifests",
]

MAX_BYTES = 16 * 1024 * 1024
"""Longest text that is read; etcd refuses single objects far below this."""

MAX_DEPTH = 64
"""Deepest nesting that is read; the API's own types stay below 20."""

MAX_NODES = 2_000_000
"""Most values that are read, aliases counted each time they are used."""


class _Loader(yaml.CSafeLoader):
    """Reads what JSON can hold: dates stay strings, keys become strings."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (the base class fixes the type)
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+\Z"), list("-+0123456789")
)


def read_manifests(text: str, *, file: str = "") -> tuple[dict[str, Any], ...]:
    """Read every document that is an object; empty documents are passed over, `kind: List` is opened.

    Args:
        text: YAML or JSON.
        file: Name of the file for messages.

    Raises:
        ProblemsError: `yaml-syntax`, `yaml-duplicate-key`, `yaml-too-large`, or `yaml-not-an-object` for a document
            that is a list or a single value.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _refusal(
            file, "yaml-too-large", f"more than {MAX_BYTES // 1024 // 1024} MiB of YAML", "split the file"
        )
    manifests: list[dict[str, Any]] = []
    budget = _Budget(file, MAX_NODES)
    loader: _Loader | None = None
    try:
        _check_depth(text, file)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                break
            budget.check(node)
            document = _plain(loader.construct_document(node))
            manifests.extend(_objects(document, file=file, line=node.start_mark.line + 1))
    except yaml.YAMLError as error:
        raise _syntax_refusal(file, error) from error
    finally:
        if loader is not None:
            loader.dispose()
    return tuple(manifests)


def _check_depth(text: str, file: str) -> None:
    # libyaml's composer recurses in C and would end the process; its events come one by one.
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(file)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Budget:
    """Counts values over all documents, so that a small text cannot unfold into a large one."""

    def __init__(self, file: str, nodes: int) -> None:
        self.file = file
        self.left = nodes

    def check(self, node: yaml.Node, depth: int = 0) -> None:
        self.left -= 1
        if self.left < 0:
            raise _refusal(
                self.file,
                "yaml-too-large",
                f"more than {MAX_NODES:,} values",
                "write the aliases out, or split the file",
            )
        if depth > MAX_DEPTH:
            raise _too_deep(self.file)
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
            for key, value in node.value:
                self.check(key, depth + 1)
                self.check(value, depth + 1)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self.check(item, depth + 1)

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refusal(
                    self.file, "yaml-syntax", "a key is not a plain value", "", line=key.start_mark.line + 1
                )
            if key.value in seen:
                raise _refusal(
                    self.file,
                    "yaml-duplicate-key",
                    f"key {key.value[:80]!r} is written twice in one mapping",
                    "keep one of the two",
                    line=key.start_mark.line + 1,
                )
            seen.add(key.value)
            if key.tag != "tag:yaml.org,2002:merge":
                key.tag = "tag:yaml.org,2002:str"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    shown = f"the number {value}" if isinstance(value, float) else f"a value of type {type(value).__name__}"
    raise yaml.constructor.ConstructorError(None, None, f"{shown} is not JSON data")


def _objects(document: Any, *, file: str, line: int) -> Iterable[dict[str, Any]]:
    if document is None:
        return
    if not isinstance(document, dict):
        kind = "list" if isinstance(document, list) else "single value"
        raise _refusal(
            file,
            "yaml-not-an-object",
            f"a document is a {kind}, not an object",
            "start it with apiVersion and kind",
            line=line,
        )
    if document.get("kind") == "List" and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(item, file=file, line=line)
        return
    yield document


def _refusal(file: str, code: str, message: str, hint: str, *, line: int = 0) -> ProblemsError:
    place = Place(file=file, line=line) if file else None
    return ProblemsError([Problem(path="document", code=code, message=message, hint=hint, place=place)])


def _too_deep(file: str) -> ProblemsError:
    return _refusal(
        file, "yaml-too-large", f"values are nested more than {MAX_DEPTH} deep", "no Kubernetes object is"
    )


def _syntax_refusal(file: str, error: yaml.YAMLError) -> ProblemsError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return _refusal(file, "yaml-syntax", f"not YAML: {problem}", "", line=mark.line + 1 if mark else 0)
