r"""Escapes untrusted text for what shows it: one function for each medium, called where the text is written.

Names, values, messages and paths come from pull requests, clusters, forges and peers. What they could do beside being
read differs by medium: steer a terminal, be a command of a runner, markup, a link, a mention, or no text of the
format at all. In every medium a character that nobody sees, or that moves others about, is spelled out as in
`\u202e`.

A line break of our own layout is none of theirs: `one_line` spells theirs out, and `block` is for text whose lines
are laid out by us, or may be anybody's. `literal` shows values of users as messages have them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

_IGNORABLE: Final = frozenset(
    point
    for first, last in (
        *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800)),
        *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)),
    )
    for point in range(first, last + 1)
)
"""What shows nothing though its category is that of letters and marks: Default_Ignorable_Code_Point of Unicode's
DerivedCoreProperties, without those that `isprintable` refuses too, and the empty pattern of Braille."""

_SELECTED: Final = re.compile("([^\x00-\x7f])([\ufe0e\ufe0f])")
"""A selector says whether the symbol before it is an emoji. Behind anything else it only hides."""

_COMMAND: Final = re.compile(r"(?m)^([ \t]*:):|(##)\[")
"""Where a runner of GitHub's workflows begins to read a command: `::` first in a line, the older `##[` anywhere
(src/Runner.Common/ActionCommand.cs of actions/runner)."""

_MARKUP: Final = re.compile(r"[&<>\\`*_\[\]|~$@#]|:(?=\S)|(?<=www)\.")
"""What begins markup or a link in some Markdown."""

_BLOCK: Final = re.compile(r"\A(?:[-+=](?=[-= ]|\Z)| |\d+[.)](?= |\Z))| \Z")
"""What begins a list, a line across, a heading or an indented block at the start of a line, and spaces that are dropped at its end."""

_ADDRESS: Final = re.compile(r"(?<=@)|(?<=:)(?=//)|(?<=\b[Ww][Ww][Ww])(?=\.)")
"""Where an address of mail or of a page is parted."""

_REFERENCE: Final = re.compile(
    r"""
      (?<=@)(?=[\w.-])                                # people, teams, and addresses of mail
    | (?<=\#)(?=0*[1-9]) | (?<=[!&$])(?=\d)            # issues, merge requests, epics, snippets
    | (?<=[~%])(?=[\w"'])                             # labels and milestones
    | (?<=:)(?=//) | (?<=\b[Ww][Ww][Ww])(?=\.)        # addresses of pages
    | (?<=\b[Gg][Hh]-)(?=\d)                          # issues once more
    | (?<=:)(?=[a-z+_-][\w+-]*:)                      # pictures by name
    | (?<=\[)(?=[a-z_]+:|\[|[+-]) | (?<=\{)(?=[+-])   # [vulnerability:1], pages of a wiki, marked changes
    | (?<=\*)(?=iteration:) | (?<=[\w.-])(?=>)        # and projects: namespace/project>
    """,
    re.VERBOSE,
)
"""Where a forge begins to read a reference in the finished page, in which an entity is the character that it stands for."""

_COMMIT: Final = re.compile(r"(?<![\w-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b", re.IGNORECASE)
"""The hash of a commit. At the end of a name it is that of its content, which is ours."""

_NO_WIDTH: Final = "&#8203;"
_EMPTY: Final = "<!-- -->"
_HERE: Final = "\x00"

_MARKUP_OF_XML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;"})
# The standard library's own escapes bring its HTTP client and TLS along, a tenth of the time of a short run.


def one_line(text: str) -> str:
    """The text in one line, with everything hidden spelled out: line breaks and tabs too."""
    return text if text.isascii() and text.isprintable() else _spelled(text, _IN_LINE)


def block(text: str) -> str:
    """The text with everything hidden spelled out but its line breaks and tabs."""
    return text if text.isascii() and text.isprintable() else _spelled(text, _IN_BLOCK)


def paragraph(text: str) -> str:
    """The text as `block` shows it, with every line but the first indented: none can pass for a line of ours."""
    return re.sub(r"\n(?=\S)", "\n    ", block(text)) if "\n" in text else block(text)


def log_line(text: str) -> str:
    """One line for a terminal or the log of a job: nothing steers it, and no runner takes it for a command."""
    return without_commands(one_line(text))


def log_block(text: str) -> str:
    """Lines for a terminal or the log of a job, in the layout that they have."""
    return without_commands(block(text))


def without_commands(text: str) -> str:
    """The text with the beginnings of a runner's commands spelled out.

    It is the last character of each that is: what is written later cannot change what was written before.
    """
    if "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda found: f"{found[1]}\\u003a" if found[1] else f"{found[2]}\\u005b", text)


def has_command(text: str) -> bool:
    """True when a runner would take some line of *text* for a command."""
    return ("::" in text or "##[" in text) and _COMMAND.search(text) is not None


def workflow_command(name: str, message: str, properties: Mapping[str, object]) -> str:
    """A command of ours to a runner of GitHub's workflows, in one line; properties without a value are left out."""
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    return f"::{name} {shown}::{_data(block(message))}".replace("\t", "\\t")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\n", "%0A")


def markdown(text: str) -> str:
    """Plain text for any place of a page in Markdown: neither markup, nor a link, nor a mention or other reference.

    An entity is never read as Markdown or HTML. Forges look for references once more in the finished page, where it is
    the character that it stands for: there a space without width parts the sign from the name.
    """
    parted = _COMMIT.sub(_in_parts, _REFERENCE.sub(_HERE, one_line(text)))
    shown = _MARKUP.sub(_as_entity, parted)
    # The text may be the first of its line, where a sign or number begins a list.
    return _BLOCK.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", shown).replace(_HERE, _NO_WIDTH)


def _in_parts(commit: re.Match[str]) -> str:
    # Seven characters are the fewest that a forge takes for a hash.
    return _HERE.join(commit[0][start : start + 6] for start in range(0, len(commit[0]), 6))


def markdown_code(text: str) -> str:
    """Code in a line of Markdown, or of HTML in it. What is copied from it is as it was.

    Forges look for no references in code. But GitHub's parser, cmark-gfm, looks for addresses of mail in every text of the
    page (`postprocess` in extensions/autolink.c), and GitLab's, comrak, for those of pages too. A comment of HTML ends a text there.
    """
    parted = _ADDRESS.sub(_HERE, one_line(text))
    return f"<code>{_MARKUP.sub(_as_entity, parted).replace(_HERE, _EMPTY)}</code>"


def _as_entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def xml_text(text: str) -> str:
    """Text of an element of XML 1.0, which cannot hold every character, not even as an entity."""
    return block(text).translate(_MARKUP_OF_XML)


def xml_attribute(text: str) -> str:
    """The value of an attribute of XML 1.0, with its quotes."""
    return f'"{xml_text(text)}"'.replace("\n", "&#10;")


def json_text(data: Any, *, indent: int | None = 2, sort_keys: bool = False, letters: bool = False) -> str:
    """*data* as JSON; with *letters* those of every script stay as they are, else they are escaped too.

    It reads as *data* in every parser: escapes stand in strings alone, where they mean the same.
    """
    return escape_json(json.dumps(data, ensure_ascii=not letters, indent=indent, sort_keys=sort_keys))


def escape_json(text: str, *, also_yaml: bool = False) -> str:
    """A text that is JSON, with what is hidden in it escaped.

    With *also_yaml* it stays one of YAML too, which has no escapes by pairs: above U+FFFF nothing is escaped then.
    """
    if not text.isascii() or "\x7f" in text:
        text = text.translate(_IN_BOTH if also_yaml else _IN_JSON)
    return text.replace("##[", "##\\u005b")


class _Spelling(dict[int, str]):
    """For `str.translate`: what each character becomes, found when it is first met."""

    def __init__(self, spell: Callable[[int], str], kept: str = "") -> None:
        super().__init__({ord(each): each for each in f" {kept}"})
        self._spell = spell

    def __missing__(self, point: int) -> str:
        character = chr(point)
        shown = character.isprintable() and point not in _IGNORABLE
        self[point] = character if shown else self._spell(point)
        return self[point]


def _as_escape(point: int) -> str:
    # What YAML between double quotes, Python and people read alike.
    return {0x0A: "\\n", 0x09: "\\t"}.get(point) or (
        f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
    )


def _as_json(point: int) -> str:
    return json.dumps(chr(point))[1:-1] if point != 0x7F else "\\u007f"


_IN_LINE: Final = _Spelling(_as_escape)
_IN_BLOCK: Final = _Spelling(_as_escape, kept="\n\t")
_IN_JSON: Final = _Spelling(_as_json, kept="\n")
_IN_BOTH: Final = _Spelling(lambda point: _as_json(point) if point < 0x10000 else chr(point), kept="\n")


def _spelled(text: str, spelling: _Spelling) -> str:
    if "\ufe0f" not in text and "\ufe0e" not in text:
        return text.translate(spelling)
    parts = []
    end = 0
    for found in _SELECTED.finditer(text):
        if _is_symbol(found[1]):
            parts += [text[end : found.end(1)].translate(spelling), found[2]]
            end = found.end()
    return "".join([*parts, text[end:].translate(spelling)])


@lru_cache(maxsize=1024)
def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sm") and ord(character) not in _IGNORABLE


def literal(value: object) -> str:
    """The literal of *value* in bounded length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
