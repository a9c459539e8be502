"""The text of selectors: literals, and tests joined by `&&` and `||`.

Every byte that leaves this module goes into object names by way of a hash, so what it writes is frozen by the golden
files of `tests/unit/cel/golden`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"),
        *("let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    }
)
"""Words that cannot stand behind a dot (RESERVED and the keyword literals in the CEL specification)."""

_ESCAPES: Final = {
    "\\": r"\\",
    '"': r"\"",
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}


@dataclass(frozen=True, slots=True)
class Atom:
    """One test that binds tighter than `&&`."""

    text: str


@dataclass(frozen=True, slots=True)
class Every:
    """All parts must be true."""

    parts: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part must be true."""

    parts: tuple[Clause, ...]


Clause: TypeAlias = Atom | Every | Some


def quote(text: str) -> str:
    """*text* as a CEL string literal.

    Raises:
        ValueError: When it holds NUL, at which the engine stops, or half of a surrogate pair.
    """
    if "\0" in text:
        raise ValueError("a text cannot hold NUL")
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    parts = []
    for character in text:
        code = ord(character)
        if 0xD800 <= code <= 0xDFFF:
            raise ValueError(f"a text cannot hold half of a surrogate pair, U+{code:04X}")
        # Separators of lines and what terminals act on would hide in a manifest, hence everything unprintable goes
        # by number.
        if character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif character.isprintable():
            parts.append(character)
        else:
            parts.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
    return f'"{"".join(parts)}"'


def write(clause: Clause) -> str:
    """The expression. An `&&` inside `||` gets parentheses, which readers need and CEL does not."""
    simple = _simplify(clause)
    match simple:
        case Atom(text=text):
            return text
        case Every(parts=parts):
            return " && ".join(map(_write_part, parts))
        case Some(parts=parts):
            return " || ".join(map(_write_part, parts))


def _write_part(part: Clause) -> str:
    return part.text if isinstance(part, Atom) else f"({write(part)})"


def _simplify(clause: Clause) -> Clause:
    """Joined with what is of the same kind, and without repetition: the `has` of two tests on one attribute mostly."""
    if isinstance(clause, Atom):
        return clause
    kind = type(clause)
    parts: dict[Clause, None] = {}
    for part in map(_simplify, clause.parts):
        parts.update(dict.fromkeys(part.parts if isinstance(part, kind) else (part,)))
    return next(iter(parts)) if len(parts) == 1 else kind(tuple(parts))
