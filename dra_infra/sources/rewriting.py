"""Files with some of their objects changed, taken away or added, and all else as it is written."""

from __future__ import annotations

import difflib
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, NamedTuple

from dra_infra.documents.json_patch import patch_json
from dra_infra.documents.yaml import write_manifest, write_manifests
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.documents.yaml_patch import NotPatchedError, find_comments, patch_document
from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import holds_placeholder
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.output.wording import count_of
from dra_infra.placement.demand import find_unknown
from dra_infra.sources.cluster_objects import without_written
from dra_infra.sources.files import SourceObject

NOT_WRITTEN: Final = "value-not-written"
"""The code of an object that no file says, for a program makes it of values that are not to be had."""

_HEADER: Final = re.compile(r"\s*(?:---[ \t]*\n\s*)?((?:#.*\n)+)")
_HALF: Final = re.compile("[\ud800-\udfff]")
_MARKER: Final = re.compile(r"\[(?:unknown|secret)\\*\]", re.IGNORECASE)
"""A marker of a value that is not to be had, also as a pattern of a selector has it."""


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
        anew: Lines, from 0 on, of documents that are written anew, without their comments, and why there was no other
            way.
        kept: Lines, from 0 on, of documents that stay as they are though objects of theirs change, for what follows
            them before the next `---` is not YAML.
        dropped: Lines, from 0 on, of documents with the number of their comments that are left out.
    """

    text: str
    anew: tuple[tuple[int, str], ...] = ()
    kept: tuple[int, ...] = ()
    dropped: tuple[tuple[int, int], ...] = ()


def rewrite(text: str, replacements: Sequence[Replacement]) -> Rewritten:
    """Replaces objects of one file.

    Args:
        text: The file as it was when the objects were read.
        replacements: Objects of the file, in their order.

    Raises:
        ValueError: When they stand in another order, or twice.
    """
    by_document: dict[int, list[Replacement]] = {}
    for each in replacements:
        by_document.setdefault(id(each.source.document), []).append(each)
    parts: list[str] = []
    anew: list[tuple[int, str]] = []
    kept: list[int] = []
    dropped: list[tuple[int, int]] = []
    position = 0
    groups = list(by_document.values())
    for of_document, following in zip(groups, [*groups[1:], []], strict=True):
        document = of_document[0].source.document
        stays = all(each.manifest is each.source.manifest and not each.added for each in of_document)
        start = text.find(document.text, position)
        if start < 0:
            if stays:
                # A part of an object, which was read again, and whose text is the whole file.
                continue
            message = f"line {document.first_line + 1} is not behind the documents before it"
            raise ValueError(message)
        parts.append(text[position:start])
        position = start + len(document.text)
        if stays or document.is_json:
            parts.append(document.text if stays else _rewrite_json(document.text, of_document))
            continue
        try:
            changed, why_anew, left_out = _rewrite_yaml(document.text, of_document)
        except RefusedYamlError:
            parts.append(document.text)
            kept.append(document.first_line)
            continue
        parts.append(changed)
        if not any(each.manifest or each.source.path for each in of_document) and any(
            each.manifest for each in following
        ):
            parts.append(_last_comments(document.text))
        if why_anew:
            anew.append((document.first_line, why_anew))
        elif left_out:
            dropped.append((document.first_line, left_out))
    return Rewritten("".join((*parts, text[position:])), tuple(anew), tuple(kept), tuple(dropped))


def _rewrite_yaml(text: str, replacements: Sequence[Replacement]) -> tuple[str, str, int]:
    """The text of a document, why it is written anew, which is empty where it is not, and how many comments are left out.

    Comments of lines that go stand above the first object that comes with it.

    Raises:
        RefusedYamlError: When something that is not YAML follows the document.
    """
    is_dos = "\r\n" in text
    text = text.replace("\r\n", "\n") if is_dos else text
    (data,) = [each.data for each in read_documents(text, repeated=[])]
    new, added = _replace(data, replacements)
    changed = text
    why_anew = ""
    if new is None:
        # What stands at the top, such as a licence, is of the file.
        header = _HEADER.match(text) if replacements[0].source.document.first_line == 0 else None
        changed = header[1] if header else ""
    elif new != data:
        try:
            changed = patch_document(text, data, new)
        except NotPatchedError as error:
            changed = ("---\n" if text.startswith("---") else "") + write_manifest(new)
            why_anew = str(error)
    left_out = [] if why_anew else _find_left_out(text, changed, is_gone=new is None)
    for number, each in enumerate(added):
        break_before = "" if not changed or changed.endswith("\n") else "\n"
        separator = "---\n" if changed or text.startswith("---") else ""
        comments = "" if number else "".join(f"{comment}\n" for comment in left_out)
        changed += f"{break_before}{separator}{comments}{write_manifest(each)}"
    return (changed.replace("\n", "\r\n") if is_dos else changed), why_anew, 0 if added else len(left_out)


def _find_left_out(before: str, after: str, *, is_gone: bool) -> list[str]:
    """The comments of a text that its new form does not have; those below an object that goes are of the next one."""
    # Comments are on lines with a #. Where all of these stay, none is left out, and the slower look is saved.
    if "#" not in before:
        return []
    if not is_gone and _marked_lines(before) <= _marked_lines(after):
        return []
    kept = Counter(find_comments(after))
    before = before.removesuffix(_last_comments(before)) if is_gone else before
    left_out: list[str] = []
    for comment in find_comments(before):
        if kept[comment]:
            kept[comment] -= 1
        else:
            left_out.append(comment)
    return left_out


def _marked_lines(text: str) -> Counter[str]:
    return Counter(line for line in text.splitlines() if "#" in line) if "#" in text else Counter()


def _last_comments(text: str) -> str:
    """The comments below an object, in front of the `---` of the next, of which they speak."""
    lines = reversed(text.splitlines(keepends=True))
    last = list(takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
    return "".join(reversed(last)).lstrip("\r\n")


def _rewrite_json(text: str, replacements: Sequence[Replacement]) -> str:
    data = json.loads(text)
    new, added = _replace(data, replacements)
    found = re.search(r"\n([ \t]+)\"", text)
    plain = text.replace("\r\n", "\n")
    is_arranged = found and plain.strip() != json.dumps(data, indent=found[1], ensure_ascii=False)
    if is_arranged and new is not None and not _HALF.search(json.dumps([new, added], ensure_ascii=False)):
        with suppress(NotPatchedError):
            arranged = _rewrite_arranged(plain, data, new, added)
            return arranged.replace("\n", "\r\n") if "\r\n" in text else arranged
    objects = [each for each in (new, *added) if each is not None]
    # What reads JSON takes one value, so several objects are one list.
    put = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
    written = json.dumps(put, indent=found[1] if found else None, ensure_ascii=False) if objects else ""
    written = written.replace("\n", "\r\n") if "\r\n" in text else written
    # Half of a surrogate pair is an escape again: no file could hold it.
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", written)


def _rewrite_arranged(text: str, data: Any, new: Any, added: Sequence[Mapping[str, Any]]) -> str:
    """JSON whose lines somebody arranged, with only those changed that have to; objects that come with it stand on a line each.

    Raises:
        NotPatchedError: The text cannot be changed in place.
    """
    changed = patch_json(text, data, new)
    if not added:
        return changed
    body = changed.strip()
    lead, end = changed[: changed.index(body)], changed[changed.index(body) + len(body) :]
    items = ",\n".join((body, *(json.dumps(each, ensure_ascii=False) for each in added)))
    return f'{lead}{{"apiVersion": "v1", "kind": "List", "items": [\n{items}\n]}}{end}'


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


class ChangedFile(NamedTuple):
    """A file before and after; one of objects that are made is there after alone."""

    name: str
    before: str
    after: str
    is_made: bool = False


def rewrite_files(
    sources: Sequence[SourceObject], migrated: Sequence[Migrated]
) -> tuple[list[ChangedFile], list[str], list[Problem]]:
    """Each file before and after, a line for each document that lost its comments, and what could not be rewritten."""
    by_file: dict[tuple[str, bool], list[Replacement]] = {}
    for source, done in zip(sources, migrated, strict=True):
        put = Replacement(source, done.manifest, done.added)
        if not source.is_made and any(each.code == NOT_WRITTEN for each in done.remarks):
            # A file stays as it is; what goes through a pipe lacks the object, and has what was made for it.
            is_taken = source.file != "-" or _takes_markers(source.manifest, done.manifest, done.added)
            kept_object = None if source.file == "-" else source.manifest
            put = Replacement(source, kept_object, () if is_taken else done.added)
        by_file.setdefault((source.file, source.is_made), []).append(put)
    files: list[ChangedFile] = []
    notes: list[str] = []
    kept: list[Problem] = []
    for (name, is_made), replacements in by_file.items():
        if is_made:
            files.append(_made_file(name, replacements))
            continue
        before = replacements[0].source.document.whole
        if all(each.manifest is each.source.manifest and not each.added for each in replacements):
            if name == "-":
                files.append(ChangedFile(name, before, before))
            continue
        rewritten = rewrite(before, replacements)
        files.append(ChangedFile(name, before, rewritten.text))
        kept += [_not_rewritten(name, line) for line in rewritten.kept]
        notes += [
            f"{Place(file=name, line=line + 1)}: written anew, without its comments: {why}"
            for line, why in rewritten.anew
        ]
        notes += [
            f"{Place(file=name, line=line + 1)}: {count_of(number, 'comment')} of lines that go left out"
            for line, number in rewritten.dropped
        ]
    return files, notes, kept


def _made_file(name: str, replacements: Sequence[Replacement]) -> ChangedFile:
    before: list[Mapping[str, Any]] = []
    after: list[Mapping[str, Any]] = []
    for source, manifest, added in replacements:
        is_hidden = _count_unwritten(source.manifest)
        was = without_written(source.manifest)
        # Of a cluster only what changes is written.
        stays = was is not source.manifest is manifest
        before += () if is_hidden or stays else (was,)
        after += () if is_hidden or stays or manifest is None else (manifest,)
        after += () if is_hidden and _takes_markers(source.manifest, manifest, added) else added
    return ChangedFile(name, write_manifests(before), write_manifests(after), is_made=True)


def _takes_markers(
    old: Mapping[str, Any], new: Mapping[str, Any] | None, added: Sequence[Mapping[str, Any]]
) -> bool:
    """True where markers of an object went into what is added, which then says something else than the object did."""
    is_moved = len(find_unknown(new or {}, "")) < len(find_unknown(old, ""))
    return is_moved or bool(_MARKER.search(json.dumps(added)))


def mark_unwritten(
    sources: Sequence[SourceObject], migrated: Sequence[Migrated], *, is_written: bool
) -> list[Migrated]:
    """Adds a remark to each object that a program makes of values that are secret or not known yet.

    Args:
        sources: The objects as they were read.
        migrated: What became of each.
        is_written: Whether all of them are written; else only those that changed get the remark.
    """
    return [
        replace(done, remarks=(*done.remarks, _unwritten(source.manifest)))
        if (is_written or done.manifest is not source.manifest)
        and (done.manifest is not None or done.added)
        and _count_unwritten(source.manifest)
        else done
        for source, done in zip(sources, migrated, strict=True)
    ]


def _count_unwritten(manifest: Mapping[str, Any]) -> int:
    """Number of values for which there are only markers; a name that is made of one counts too."""
    # Nearly all hold none. A marker that is a key has no value that `find_unknown` counts.
    return len(find_unknown(manifest, "")) or 1 if holds_placeholder(manifest) else 0


def _unwritten(manifest: Mapping[str, Any]) -> Remark:
    paths = find_unknown(manifest, "")
    values = (
        f"{count_of(len(paths), 'value')} of it {'is' if len(paths) == 1 else 'are'}"
        if paths
        else "a part of it is"
    )
    message = (
        f"{values} secret or only known after `pulumi up`, so it is in no file and no program that is written"
    )
    hint = "change it where its own program makes it, by what this report says of it"
    return Remark(paths[0] if paths else "", "decide", NOT_WRITTEN, message, hint)


def _not_rewritten(file: str, line: int) -> Problem:
    message = "it stays as it is, for what follows it before the next --- is not YAML"
    hint, code = (
        "mend what is not YAML, or write --- in front of it, and migrate again",
        "document-not-rewritten",
    )
    return Problem(
        path="document", code=code, message=message, hint=hint, place=Place(file=file, line=line + 1)
    )


def diff_of(files: Sequence[ChangedFile]) -> str:
    """The change of all files, as tools take it: lines end at U+000A alone, whatever else ends them in YAML."""
    lines: list[str] = []
    for each in files:
        before, after = (list(io.StringIO(text, newline="\n")) for text in (each.before, each.after))
        lines += difflib.unified_diff(before, after, f"a/{each.name}", f"b/{each.name}")
    return "".join(
        each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines
    )
