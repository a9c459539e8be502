"""Files with some of their objects changed, taken away or added, and all else as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dra_infra.documents.yaml import write_manifest
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.documents.yaml_patch import NotPatchedError, patch_document
from dra_infra.sources.files import SourceObject

_HALF: Final = re.compile("[\ud800-\udfff]")


class Replacement(NamedTuple):
    """What takes the place of an object.

    Args:
        source: The object as it was read.
        manifest: The new object; None where it goes.
        added: Objects that come behind it.
    """

    source: SourceObject
    manifest: Mapping[str, Any] | None
    added: Sequence[Mapping[str, Any]] = ()


class Rewritten(NamedTuple):
    """The text of a file with its objects replaced.

    Args:
        text: All of it.
        anew: Lines, from 0 on, of documents that are written anew, without their comments: there was no other way.
        kept: Lines, from 0 on, of documents that stay as they are though objects of theirs change, for what follows
            them before the next `---` is not YAML.
    """

    text: str
    anew: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


def rewrite(text: str, replacements: Sequence[Replacement]) -> Rewritten:
    """Replaces objects of one file.

    Args:
        text: The file as it was when the objects were read.
        replacements: Objects of the file, in their order.
    """
    by_document: dict[int, list[Replacement]] = {}
    for each in replacements:
        by_document.setdefault(id(each.source.document), []).append(each)
    parts: list[str] = []
    anew: list[int] = []
    kept: list[int] = []
    position = 0
    for of_document in by_document.values():
        document = of_document[0].source.document
        start = text.find(document.text, position)
        parts.append(text[position:start])
        position = start + len(document.text)
        if all(each.manifest is each.source.manifest and not each.added for each in of_document):
            parts.append(document.text)
            continue
        if document.is_json:
            parts.append(_rewrite_json(document.text, of_document))
            continue
        try:
            changed, was_patched = _rewrite_yaml(document.text, of_document)
        except RefusedYamlError:
            parts.append(document.text)
            kept.append(document.first_line)
            continue
        parts.append(changed)
        if not was_patched:
            anew.append(document.first_line)
    return Rewritten("".join((*parts, text[position:])), tuple(anew), tuple(kept))


def _rewrite_yaml(text: str, replacements: Sequence[Replacement]) -> tuple[str, bool]:
    """The text of a document, and whether its comments are still there.

    Raises:
        RefusedYamlError: When something that is not YAML follows the document.
    """
    is_dos = "\r\n" in text
    text = text.replace("\r\n", "\n") if is_dos else text
    (data,) = [each.data for each in read_documents(text)]
    new, added = _replace(data, replacements)
    changed, was_patched = text, True
    if new is None:
        changed = ""
    elif new != data:
        try:
            changed = patch_document(text, data, new)
        except NotPatchedError:
            changed, was_patched = _anew(text, new), False
    for each in added:
        break_before = "" if not changed or changed.endswith("\n") else "\n"
        separator = "---\n" if changed or text.startswith("---") else ""
        changed += f"{break_before}{separator}{write_manifest(each)}"
    return (changed.replace("\n", "\r\n") if is_dos else changed), was_patched


def _anew(text: str, new: Mapping[str, Any]) -> str:
    return ("---\n" if text.startswith("---") else "") + write_manifest(new)


def _rewrite_json(text: str, replacements: Sequence[Replacement]) -> str:
    new, added = _replace(json.loads(text), replacements)
    found = re.search(r"\n([ \t]+)\"", text)
    written = [
        json.dumps(each, indent=found[1] if found else None, ensure_ascii=False)
        for each in (new, *added)
        if each is not None
    ]
    # Half of a surrogate pair is an escape again: no file could hold it.
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", "\n".join(written))


def _replace(data: Any, replacements: Sequence[Replacement]) -> tuple[Any, list[Mapping[str, Any]]]:
    """The data of a document with its objects replaced, and objects for which it has no place."""
    added: list[Mapping[str, Any]] = []
    # From the last on, so that positions before stay what they are.
    for each in reversed(replacements):
        if not each.source.path:
            data = each.manifest
            added = [*each.added, *added]
            continue
        numbers = [int(number) for number in re.findall(r"items\[(\d+)\]", each.source.path)]
        data = _in_list(data, numbers, each)
    return data, added


def _in_list(data: Mapping[str, Any], numbers: Sequence[int], replacement: Replacement) -> dict[str, Any]:
    items = list(data["items"])
    number, *rest = numbers
    if rest:
        items[number] = _in_list(items[number], rest, replacement)
    else:
        new = replacement.manifest
        # An item of a typed list need not say what it is, and goes on not to.
        own = (
            None
            if new is None
            else {
                key: value
                for key, value in new.items()
                if key in items[number] or value != replacement.source.manifest.get(key)
            }
        )
        items[number : number + 1] = [*([own] if own is not None else []), *replacement.added]
    return {**data, "items": items}
