"""Changes to YAML texts that leave all else as it is written: comments, order, quotes and blank lines.

A text is changed where its data is to change, by the positions of the parser's events, and read again: what comes out is
the data that was asked for, or nothing. A library that reads and writes whole texts would keep comments too, but not the
indentation of lists, folded lines and spaces, so that a change of one field is a change of the whole file in a review.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import yaml

from dra_infra.documents.list_items import find_origins
from dra_infra.documents.yaml import write_scalar
from dra_infra.documents.yaml_events import RefusedYamlError, key_of, read_documents


class NotPatchedError(ValueError):
    """The text has no such change that leaves the rest as it is: anchors, merged keys."""


@dataclass(slots=True)
class _Node:
    """A value as it is written.

    Args:
        start: Its first character.
        end: Behind its last one; of a block collection, behind its last value.
        is_flow: Whether it stands between brackets, or is a scalar.
        is_text_block: Whether it is a scalar of whole lines, behind `|` or `>`.
        keys: Of a mapping: where the key stands and its value, by key.
        items: Of a list: where the item begins, which is its dash in a block, and its value.
    """

    start: int
    end: int
    is_flow: bool = True
    is_text_block: bool = False
    keys: dict[str, tuple[int, _Node]] | None = None
    items: list[tuple[int, _Node]] | None = None


_LINES: Final = re.compile(r"(?s)(?!.*(?:::|##\[))[!-~][ -~]*\n(?:\n* *[!-~][ -~]*\n)*")
"""A text of lines, such as CEL behind `>` or `|`, which gets no quotes where it changes; none of them a runner's command."""
_INDENT: Final = re.compile(" *")
_COMMENT: Final = re.compile("( *)#[^\n]*\n?")


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def patch_document(text: str, old: Any, new: Any) -> str:
    """The text of one document, changed so that its data is *new*.

    Args:
        text: YAML of one document, with a separator and comments before it or without.
        old: The data that it says.
        new: Plain JSON data.

    Raises:
        NotPatchedError: The document cannot be changed in place.
    """
    # Behind a last line without a break each of two edits would bring one.
    whole = text if text.endswith("\n") else f"{text}\n"
    try:
        edits = list(_Patch(whole).changes(old, new))
        is_longer = whole is text or any(each.start == len(whole) for each in edits)
        patched = _apply(whole, edits)[: None if is_longer else -1]
        # Of a key that stands twice the last one counts, before and after.
        again = [each.data for each in read_documents(patched, repeated=[])]
    except (RefusedYamlError, ValueError) as error:
        raise NotPatchedError(str(error)) from error
    if not _is_same(again, [new]):
        raise NotPatchedError("what is written there belongs to another place too")
    return patched


def _is_same(one: Any, other: Any) -> bool:
    if one != other:
        return False
    # 1 and True are equal to Python. Where keys have one order, which nearly all have, texts tell it fastest.
    return repr(one) == repr(other) or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _apply(text: str, edits: list[_Edit]) -> str:
    parts = list[str]()
    position = 0
    for start, end, put in sorted(edits, key=lambda each: each[:2]):
        if start < position:
            raise NotPatchedError("two changes meet in one line")
        parts += (text[position:start], put)
        position = end
    return "".join((*parts, text[position:]))


class _Patch:
    """The edits of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        loader = yaml.CSafeLoader(text)
        try:
            self._root = _read_document(loader, text)
        finally:
            loader.dispose()
        self._dash_indent = _dash_indent(self._root, text) or 0
        self._going: dict[tuple[str, str], list[tuple[int, _Node]]] = {}
        self._moved: dict[int, int] = {}

    def changes(self, old: Any, new: Any) -> Iterator[_Edit]:
        """Yields the edits after which *old*, which the text says, is *new*."""
        is_block = self._root.keys and not self._root.is_flow
        if not (is_block and isinstance(old, dict) and isinstance(new, Mapping)):
            raise NotPatchedError("the document is no block of keys")
        return self._in_value(self._root, old, new)

    def _in_value(self, node: _Node, old: Any, new: Any) -> Iterator[_Edit]:
        """Edits inside a value that stays a mapping, a list or a scalar of one line."""
        if _is_same(old, new):
            return
        if node.is_flow:
            if node.is_text_block:
                raise NotPatchedError("a text of several lines changes")
            # What stands in one line has its comments above.
            line = self._line_start(node.start)
            for comment in self._comments(node):
                indent = _INDENT.match(self._text, line)
                yield _Edit(line, line, f"{indent[0] if indent else ''}{comment}\n")
            self._going = {}
            self._note(node, old)
            is_json = self._text.startswith('{"', node.start)
            yield _Edit(node.start, node.end, self._flow(new, is_json=is_json))
        elif node.keys is not None:
            yield from self._in_mapping(node, node.keys, old, new)
        elif node.items is not None:
            yield from self._in_list(node.items, old, new)

    def _in_mapping(
        self, node: _Node, keys: dict[str, tuple[int, _Node]], old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> Iterator[_Edit]:
        indent = self._column(node.start)
        stay = [key for key in keys if key in new]
        if not stay:
            raise NotPatchedError("nothing of a mapping stays")
        goes = {key for key in keys if key not in new or not self._stays(keys[key][1], old[key], new[key])}
        self._going = {}
        for key in filter(goes.__contains__, keys):
            self._note(keys[key][1], old.get(key), key, keys[key][0])
        edits = [self._anew(*keys[key], self._entry(key, new[key], indent)) for key in stay if key in goes]
        # New keys stand behind the one that is before them, several in their order in one edit.
        added: dict[int, str] = {}
        before = next(iter(stay))
        for key, value in new.items():
            if key in keys:
                before = key
            elif key not in old or not _is_same(old[key], value):
                # Comments below that are further in are of what is there.
                behind = self._tail(self._line_end(keys[before][1].end), indent)
                lines = " " * indent + self._entry(key, value, indent)
                lead = "" if self._text[behind - 1 : behind] == "\n" else "\n"
                added[behind] = added.get(behind, lead) + lines
        for key in keys:
            if key not in new:
                yield self._removal(keys, key)
            elif key not in goes:
                yield from self._in_value(keys[key][1], old[key], new[key])
        # Behind those inside of what stays, which may be at the same place.
        yield from (*edits, *(_Edit(at, at, lines) for at, lines in added.items()))

    def _note(self, node: _Node, data: Any, key: str = "", start: int = -1) -> None:
        """Takes down how a value that goes away is written behind its key, and all in it, for where it comes back."""
        self._going.setdefault((key, repr(data)), []).append((start, node))
        for name, (at, below) in (node.keys or {}).items():
            if isinstance(data, dict) and name in data:
                # Between brackets a key has no lines of its own.
                self._note(below, data[name], name, -1 if node.is_flow else at)
        for (_, below), each in zip(node.items or (), data if isinstance(data, list) else (), strict=False):
            self._note(below, each, key)

    def _moved_lines(self, key: str, value: Any, indent: int) -> str:
        """The lines of a key as they are written where they go away, with their comments; empty where they do not."""
        going = self._going.get((key, repr(value)), [])
        if not going or going[0][0] < 0:
            return ""
        start, node = going.pop(0)
        line = self._line_start(start)
        column = self._column(start)
        lead = line if self._text[line:start].strip() else self._lead(start)
        first, *rest = self._text[lead + column : self._line_end(node.end)].splitlines(keepends=True)
        shift = indent - column
        if any(line[: max(-shift, 0)].strip() for line in rest):
            return ""
        self._moved[start] = lead
        moved = (" " * shift + line[max(-shift, 0) :] if line.strip() else line for line in rest)
        return "".join((first, *moved)).rstrip("\n") + "\n"

    def _in_list(self, items: list[tuple[int, _Node]], old: list[Any], new: list[Any]) -> Iterator[_Edit]:
        ends = [0, *(self._line_end(node.end) for _, node in items)]
        leads = [self._lead(start, least) for (start, _), least in zip(items, ends, strict=False)]
        indent = self._column(items[0][0])
        at = leads[0]
        break_ = ""
        goes = dict(enumerate(ends[1:]))
        for value, (origin, stays) in zip(new, find_origins(old, new), strict=True):
            if origin < 0:
                self._going = {}
                yield _Edit(at, at, f"{break_}{' ' * indent}{self._item(value, indent)}")
                break_ = ""
                continue
            start, node = items[origin]
            begin = leads[origin]
            end = self._tail(ends[origin + 1], self._column(start))
            if self._stays(node, old[origin], value):
                edits = list(self._in_value(node, old[origin], value))
            else:
                self._going = {}
                self._note(node, old[origin])
                edits = [self._anew(start, node, self._item(value, indent))]
            if stays:
                yield from edits
                del goes[origin]
                at = end
                break_ = "" if self._text[end - 1] == "\n" else "\n"
            else:
                # What stands below it and further in is of it too.
                goes[origin] = end
                within = [each._replace(start=each.start - begin, end=each.end - begin) for each in edits]
                lines = _apply(self._text[begin:end], within).rstrip("\n")
                yield _Edit(at, at, f"{break_}{lines}\n")
                break_ = ""
        yield from (_Edit(leads[each], end, "") for each, end in goes.items())

    def _lead(self, at: int, least: int = 0) -> int:
        """Where the comments begin that stand right above an item or key, no further in or out: they go with it."""
        start, hash_ = self._line_start(at), " " * self._column(at) + "#"
        while start > least and self._text.startswith(hash_, above := self._line_start(start - 1)):
            start = above
        return start

    def _tail(self, end: int, column: int) -> int:
        """Where the comments end that stand right below an item, further in than its dash."""
        while (below := _COMMENT.match(self._text, end)) and len(below[1]) > column:
            end = below.end()
        return end

    def _stays(self, node: _Node, old: Any, new: Any) -> bool:
        """True where the value is changed inside: what it is stays, and something of it does."""
        if _is_same(old, new):
            return True
        if node.is_text_block:
            return False
        if node.is_flow:
            # One with a comment would lose it where it is written anew.
            is_line = not isinstance(new, (Mapping, list)) or not new
            return is_line or bool(node.keys or node.items) or bool(self._comments(node))
        if isinstance(old, dict) and isinstance(new, Mapping):
            return bool(new) and any(key in new for key in node.keys or ())
        return isinstance(old, list) and isinstance(new, list) and bool(new) and bool(node.items)

    def _comments(self, node: _Node) -> list[str]:
        """The comments between the brackets of a value."""
        is_collection = node.keys is not None or node.items is not None
        return find_comments(self._text[node.start : node.end]) if is_collection else []

    def _anew(self, start: int, value: _Node, lines: str) -> _Edit:
        """The lines of a key or an item in place of what is there; a comment behind a value of one line stays."""
        end = self._line_end(value.end)
        behind = self._text[value.end : end].rstrip("\n")
        if value.is_flow and behind.lstrip(" ").startswith("#"):
            lines = lines.replace("\n", f"{behind}\n", 1)
        return _Edit(start, end, lines.rstrip("\n") + ("\n" if self._text[end - 1 : end] == "\n" else ""))

    def _removal(self, keys: dict[str, tuple[int, _Node]], key: str) -> _Edit:
        start, value = keys[key]
        line = self._line_start(start)
        if not self._text[line:start].strip(" "):
            ends = [self._line_end(each.end) for at, each in keys.values() if at < start]
            # What stands at the top is of the document.
            lead = line if start == self._root.start else self._lead(start, max(ends, default=0))
            return _Edit(self._moved.get(start, lead), self._line_end(value.end), "")
        # The first key behind a dash: the next one takes its place.
        behind = [other for other, (at, _) in keys.items() if at > start]
        if not behind:
            raise NotPatchedError("the only key behind a dash")
        return _Edit(start, keys[behind[0]][0], "")

    def _entry(self, key: str, value: Any, indent: int) -> str:
        """The lines of a key, of which the first has no indent."""
        moved = self._moved_lines(key, value, indent)
        return moved or f"{write_scalar(key)}:{self._after(key, value, indent)}"

    def _item(self, value: Any, indent: int) -> str:
        if isinstance(value, Mapping) and value:
            return f"- {(' ' * (indent + 2)).join(self._entry(*each, indent + 2) for each in value.items())}"
        return f"- {self._flow(value)}\n"

    def _after(self, key: str, value: Any, indent: int) -> str:
        if written := self._between(key, value):
            return f" {written}\n"
        if isinstance(value, Mapping) and value:
            lines = (" " * (indent + 2) + self._entry(key, each, indent + 2) for key, each in value.items())
            return "\n" + "".join(lines)
        if isinstance(value, list) and value:
            below = indent + self._dash_indent
            return "\n" + "".join(" " * below + self._item(each, below) for each in value)
        if isinstance(value, str) and "\n" in value:
            is_whole = value.endswith("\n")
            block = value if is_whole else f"{value}\n"
            if _LINES.fullmatch(block):
                return f" |{'' if is_whole else '-'}\n{textwrap.indent(block, ' ' * (indent + 2))}"
        return f" {self._flow(value)}\n"

    def _between(self, key: str, value: Any) -> str:
        """A value between quotes or brackets, or a number, as it is written in one line where it goes away; empty where it is not."""
        _, node = next(iter(self._going.get((key, repr(value)), ())), (0, _Node(0, 0)))
        text = self._text[node.start : node.end]
        # n and 0x1F are another value to some readers, so what stays is not written in another way.
        is_kept = isinstance(value, (bool, int, float)) or text[:1] in ("{", "[", '"', "'")
        return text if is_kept and "\n" not in text else ""

    def _flow(self, value: Any, key: str = "", *, is_json: bool = False) -> str:
        """A value in one line, in the quotes that it has where it goes away, or those of JSON."""
        if text := self._between(key, value):
            return text
        if isinstance(value, Mapping):
            names = {each: self._flow(each, is_json=is_json) for each in value}
            items = (f"{names[at]}: {self._flow(each, at, is_json=is_json)}" for at, each in value.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(value, list):
            return f"[{', '.join(self._flow(each, key, is_json=is_json) for each in value)}]"
        written = write_scalar(value)
        # Between brackets these signs end a plain text.
        is_quoted = isinstance(value, str) and (is_json or set(written) & set(",[]{}\n"))
        return json.dumps(value, ensure_ascii=False) if is_quoted else written

    def _column(self, at: int) -> int:
        return at - self._line_start(at)

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        """Behind the line of the character before *at*, its comment and its line break."""
        if at and self._text[at - 1] == "\n":
            return at
        found = self._text.find("\n", at)
        return len(self._text) if found < 0 else found + 1


def find_comments(text: str) -> list[str]:
    """The comments in YAML: each # that is in none of its tokens, with what is behind it."""
    found: list[str] = []
    position = 0
    for token in yaml.scan(text, Loader=yaml.CSafeLoader) if "#" in text and "\n" in text else ():
        found += re.findall("#[^\n]*", text[position : token.start_mark.index])
        position = token.end_mark.index
    return found


def _dash_indent(node: _Node, text: str) -> int | None:
    """How far the dashes of lists stand behind the key above them: that of the first list; None where there is none."""
    for start, value in (node.keys or {}).values():
        if value.items and not value.is_flow:
            dash = value.items[0][0]
            return max((dash - text.rfind("\n", 0, dash)) - (start - text.rfind("\n", 0, start)), 0)
        if not value.is_flow and (found := _dash_indent(value, text)) is not None:
            return found
    return None


def _read_document(loader: yaml.CSafeLoader, text: str) -> _Node:
    while True:
        event: Any = loader.get_event()
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent, yaml.AliasEvent)):
            return _read(loader, event, text)
        if isinstance(event, yaml.StreamEndEvent):
            raise NotPatchedError("there is no document")


def _read(loader: yaml.CSafeLoader, event: Any, text: str) -> _Node:
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
        return _Node(start, end, is_text_block=getattr(event, "style", None) in ("|", ">"))
    node = _Node(start, end, is_flow=bool(event.flow_style))
    below: Any = loader.get_event()
    if isinstance(event, yaml.MappingStartEvent):
        node.keys = {}
        while not isinstance(below, yaml.MappingEndEvent):
            node.keys[key_of(below)] = (below.start_mark.index, _read(loader, loader.get_event(), text))
            below = loader.get_event()
        parts = list(node.keys.values())
    else:
        node.items = []
        while not isinstance(below, yaml.SequenceEndEvent):
            value = _read(loader, below, text)
            # Events do not say where a dash is: it is the last one before its item.
            begin = value.start if node.is_flow else text.rfind("-", 0, below.start_mark.index)
            node.items.append((begin, value))
            below = loader.get_event()
        parts = node.items
    if node.is_flow:
        node.end = below.end_mark.index
    elif parts:
        node.start = parts[0][0]
        node.end = parts[-1][1].end
    return node
