"""Manifests as YAML: reads lists of objects, and writes one right spelling for each object.

PyYAML speaks YAML 1.1, Kubernetes' parsers understand more spellings of numbers and booleans than PyYAML does
(sigs.k8s.io/yaml). A string that any of them would read as something else is quoted.

PyYAML decides what every text looks like. Mappings, lists and texts that plainly need no quotes, which is nearly all
of a manifest, are put together here to the same bytes in a quarter of the time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import yaml

from dra_infra.documents.json_texts import are_lines, read_lines
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.errors import Place, Problem, ProblemsError
from dra_infra.output.escaping import block, has_command

_TOP_KEYS: Final = ("apiVersion", "kind", "metadata", "spec")
_METADATA_KEYS: Final = ("name", "generateName", "namespace", "labels", "annotations")

_PLAIN: Final = re.compile(r"[A-Za-z/](?:[!-9;-~]| (?![ #]|\Z)|:(?! |\Z))*\Z")
"""Texts that libyaml takes without quotes if they are no other type: no sign of a comment or a key, one line."""

_LONGEST_KEY: Final = 100
"""Characters; libyaml writes longer keys than 128 bytes in another form."""


class _Dumper(yaml.CSafeDumper):
    """Writes no anchors; strings with line breaks become blocks where YAML allows it."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (the base class fixes the signature)
        return True


class _NotSimpleError(Exception):
    """Something in the manifest whose spelling only PyYAML knows."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if has_command(text):
        # Between quotes a runner sees no command in it, for there the text begins with a quote and may be escaped.
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_mapping(dumper: _Dumper, mapping: Mapping[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping.items())


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
# Go's YAML reads exponents without a point, 0o17 and y/n; PyYAML alone would leave such strings without quotes.
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+0123456789."),
)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?0[oO][0-7_]+\Z"), list("-+0"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))


def write_manifest(manifest: Mapping[str, Any]) -> str:
    """One object as YAML: apiVersion, kind, metadata, spec, the rest sorted; ends with a line break."""
    ordered = order_keys(manifest)
    try:
        return "".join(_block(ordered, ""))
    except _NotSimpleError:
        return _dump(ordered)


def write_manifests(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Several objects as one text, divided by `---`, in the order given."""
    return "---\n".join(write_manifest(manifest) for manifest in manifests)


def order_keys(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with its keys in the order in which it is written."""
    ordered = _ordered(manifest, _TOP_KEYS)
    if isinstance(ordered.get("metadata"), dict):
        ordered["metadata"] = _ordered(ordered["metadata"], _METADATA_KEYS)
    return ordered


def _ordered(mapping: Mapping[str, Any], first: tuple[str, ...]) -> dict[str, Any]:
    names = [name for name in first if name in mapping] + sorted(set(mapping) - set(first))
    return {name: _sorted(mapping[name]) for name in names}


def _sorted(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _ordered(value, ())
    if isinstance(value, (list, tuple)):
        # Containers, requests and claims read best as people write them: the name first.
        return [_ordered(item, ("name",)) if isinstance(item, Mapping) else _sorted(item) for item in value]
    return value


def _block(mapping: Mapping[str, Any], indent: str) -> Iterator[str]:
    """The lines of a mapping. The first one lacks the indent when it stands behind the dash of a list."""
    if not mapping:
        raise _NotSimpleError
    for key, value in mapping.items():
        if type(key) is not str or len(key) > _LONGEST_KEY or not key.isascii():
            raise _NotSimpleError
        yield f"{indent}{_scalar(key)}:{_after(value, indent)}"


def _after(value: Any, indent: str) -> str:
    """The text behind a key's colon or a list's dash, whose own indent is *indent*, to the end of the line or block."""
    if type(value) is dict and value:
        return "\n" + "".join(_block(value, f"{indent}  "))
    if type(value) is list and value:
        return "\n" + "".join(_item(item, indent) for item in value)
    return f" {_scalar(value)}\n"


def _item(item: Any, indent: str) -> str:
    if type(item) is list and item:
        raise _NotSimpleError
    if type(item) is dict and item:
        lines = "".join(_block(item, f"{indent}  "))
        return f"{indent}- {lines[len(indent) + 2 :]}"
    return f"{indent}- {_scalar(item)}\n"


def write_scalar(value: Any) -> str:
    """A text, number, truth value, null or empty collection in one line, as `write_manifest` spells it."""
    try:
        return _scalar(value)
    except _NotSimpleError:
        return json.dumps(value, ensure_ascii=False)


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is dict:
        return "{}"
    if kind is list:
        return "[]"
    raise _NotSimpleError


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    if (
        _PLAIN.match(text)
        and not has_command(text)
        and not any(pattern.match(text) for _, pattern in _Dumper.yaml_implicit_resolvers.get(text[0], ()))
    ):
        return text
    if not text.isprintable():
        # Line breaks above all, whose lines are indented as deeply as the text stands.
        raise _NotSimpleError
    return _dump({"a": text})[len("a: ") : -1]


def _dump(manifest: Mapping[str, Any]) -> str:
    text = _dumped(manifest, allow_unicode=True)
    if block(text) != text:
        # YAML takes characters that nobody sees as they are. Escaped, they are the same to every parser.
        text = _dumped(manifest, allow_unicode=False)
    return text.replace("##[", "##\\u005b")


def _dumped(manifest: Mapping[str, Any], *, allow_unicode: bool) -> str:
    # The width keeps every scalar on one line: where a line would be folded depends on the emitter.
    text: str = yaml.dump(
        manifest,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=allow_unicode,
        width=2**30,
    )
    return text


_NAMES: Final = {list: "list", dict: "mapping", bool: "truth value", int: "number", float: "number"}
_SAMPLES: Final = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}

MAX_BYTES = 32 * 1024 * 1024
"""Longest text that is read; etcd refuses single objects far below this."""


def read_manifests(text: str, *, file: str = "") -> tuple[dict[str, Any], ...]:
    """Read every document that is an object; empty documents are passed over, `kind: List` is opened.

    Raises:
        ProblemsError: `yaml-syntax`, `yaml-duplicate-key`, `yaml-too-large`, or `yaml-not-an-object` for a document
            that is a list or a single value.
    """
    return tuple(iterate_manifests(text, file=file))


def iterate_manifests(
    text: str, *, file: str = "", note_list: Callable[[str], None] = lambda _: None
) -> Iterator[dict[str, Any]]:
    """Yield the objects of `read_manifests` one by one; the error may come after objects.

    Args:
        text: The documents.
        file: Path of the file, for problems.
        note_list: Called with the kind of the items of each typed list that is whole, such as `Pod` of a PodList.
    """
    try:
        yield from _manifests(text, note_list)
    except RefusedYamlError as error:
        place = Place(file=file, line=error.line) if file else None
        problem = Problem(
            path="document", code=error.code, message=error.message, hint=error.hint, place=place
        )
        raise ProblemsError([problem]) from error


def _manifests(text: str, note_list: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    if are_lines(text):
        for line, value in read_lines(text):
            for _, found in objects_in(value, line=line, note_list=note_list):
                yield found
        return
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        raise RefusedYamlError("yaml-too-large", f"more than {limit} MiB of YAML", "split the file")
    for document in read_documents(text):
        for _, found in objects_in(document.data, line=document.first_line + 1, note_list=note_list):
            yield found


_TEXT_OR_NONE: Final = (str, type(None))


def _is_a_page(document: Mapping[str, Any]) -> bool:
    """Return whether a list goes on elsewhere."""
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("continue"))


def objects_in(
    document: Any, *, line: int, path: str = "", note_list: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[str, dict[str, Any]]]:
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
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name), _TEXT_OR_NONE):
            raise RefusedYamlError(
                "yaml-not-an-object",
                f"{name} is a {_NAMES.get(type(document[name]), 'value')}, not a text",
                f"write {name}: {_SAMPLES[name]}",
                line=line,
            )
    kind = document.get("kind")
    # Go writes a list of no objects as null.
    items = document.get("items", None if kind == "List" else "")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list | None):
        prefix = f"{path}." if path else ""
        item = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
        if kind != "List" and not _is_a_page(document):
            note_list(kind.removesuffix("List"))
        for index, each in enumerate(items or ()):
            # The items of a typed list need not say what they are.
            whole = {**item, **each} if kind != "List" and isinstance(each, dict) else each
            yield from objects_in(whole, line=line, path=f"{prefix}items[{index}]", note_list=note_list)
        return
    yield path, document
