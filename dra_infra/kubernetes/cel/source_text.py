"""Source text of expressions: respells what the engine's parser refuses, and splits clauses at `&&`.

Spellings that Kubernetes' parser takes and the engine does not are written so that the engine takes them. Every
replacement is as wide as what it replaces, so that positions in errors stay right.

Expressions that are clauses joined by `&&` are told apart in the text, and put together again as one tree. Selectors
of a program share most of their clauses, and compiling takes most of the time of a check. A clause between two `&&`
outside of all brackets compiles to the same whatever stands around it: nothing binds looser except `||` and `?:`,
nothing is bound outside of brackets, and the cost of `&&` is the sum of its sides. What is told here of clauses is
held against the compilation of the whole in tests/unit/kubernetes/cel/test_conjunction.py, and with every expression that the
judges compile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.environment import Environment, device_fields, has_lists
from dra_infra.kubernetes.cel.tree import Call, CelType, CheckedTree, Node, renumbered

_STRING: Final = (
    r"(?:[rR][bB]?|[bB][rR])(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n]*\"|'[^'\n]*')"
    r"|\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\"|'''(?:[^\\]|\\[\s\S])*?'''"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
)
_CANDIDATE = re.compile(r"\bhas\s*\(\s*device\s*\.\s*\w+\s*\)|\bexists_one\b|\bflatten\b")
_ESCAPED = re.compile(rf"\w+(?={_STRING})|{_STRING}|//[^\n]*|(?P<escaped>`[^`\n]*`)")
_STAND_IN: Final = "flatteN"


def respell(text: str, environment: Environment) -> str:
    """Respells an expression for the engine.

    A field of `device` is a variable of the engine, and has() of a variable has no meaning there; the fields are
    always present. The engine lacks the older spelling of existsOne with two variables, and its flatten() takes lists
    that the server's does not, so that one is declared anew under another name.
    """
    if not _CANDIDATE.search(text):
        return text
    return _spellings(environment).sub(_replace, text)


def find_escaped(text: str) -> list[int]:
    """Offsets of names in backticks, which servers before 1.37 do not parse."""
    return [match.start() for match in _ESCAPED.finditer(text) if match["escaped"]] if "`" in text else []


def is_reserved(text: str) -> bool:
    """Checks that *text* holds a name that is needed here."""
    return _STAND_IN in text


def stand_in(function: str) -> str:
    """The name under which a function is declared."""
    return _STAND_IN if function == "flatten" else function


def restore_bytes(serialized: bytes) -> bytes:
    """A serialized tree with the server's names."""
    return serialized.replace(_STAND_IN.encode(), b"flatten")


def restore_text(report: str) -> str:
    """A report of the engine with the server's names."""
    return report.replace(_STAND_IN, "flatten")


@lru_cache(maxsize=32)
def _spellings(environment: Environment) -> re.Pattern[str]:
    flatten = r"|(?P<flatten>\bflatten)(?=\s*\()" if has_lists(environment) else "|(?P<flatten>(?!))"
    return re.compile(
        rf"(?P<kept>\w+(?={_STRING})|{_STRING}|//[^\n]*)"
        rf"|(?P<has>\bhas\s*\(\s*device\s*\.\s*(?:{'|'.join(device_fields(environment))})\s*\))"
        rf"|(?P<exists>\bexists_one)(?=\s*\(\s*\w+\s*,\s*\w+\s*,){flatten}"
    )


def _replace(match: re.Match[str]) -> str:
    if match["has"]:
        return re.sub(" {4}", "true", re.sub(r"[^\n]", " ", match["has"]), count=1)
    if match["flatten"]:
        return _STAND_IN
    return "existsOne " if match["exists"] else match["kept"]


_TOKENS: Final = re.compile(r"""//|"[^"\n]*"|'[^'\n]*'|["'\\`()\[\]{}]|&&|\|\||\.?\?""")
_TRIPLE: Final = ('"""', "'''", "\\")
_BOOL: Final = CelType("bool")


class Clause(NamedTuple):
    """A clause and its offset in the expression, in code points."""

    offset: int
    text: str


def split(text: str) -> tuple[Clause, ...]:
    """The clauses of *text*; none when it is not certain that it is a conjunction of several.

    Texts with escapes, comments, names in backticks or strings in three quotes are left alone: telling where those end
    is the parser's business.
    """
    if "&&" not in text or any(each in text for each in _TRIPLE):
        return ()
    clauses: list[Clause] = []
    depth, start = 0, 0
    for token in _TOKENS.finditer(text):
        sign = token[0]
        if sign in ("(", "[", "{"):
            depth += 1
        elif sign in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                return ()
        elif sign in ("//", '"', "'", "`"):
            return ()
        elif depth == 0:
            if sign in ("||", "?"):
                return ()
            if sign == "&&":
                clauses.append(Clause(start, text[start : token.start()]))
                start = token.end()
    return (*clauses, Clause(start, text[start:])) if clauses and depth == 0 else ()


def join(trees: Sequence[tuple[int, CheckedTree]]) -> CheckedTree:
    """The tree of a conjunction as the parser makes it, of the offsets and trees of its clauses.

    Its nodes are numbered anew, and `&&` has no position.
    """
    roots: list[Node] = []
    types: dict[int, CelType] = {}
    positions: dict[int, int] = {}
    references: dict[int, tuple[str, ...]] = {}
    last = 0
    for offset, tree in trees:
        roots.append(renumbered(tree.root, last))
        types |= {identity + last: found for identity, found in tree.types.items()}
        positions |= {identity + last: place + offset for identity, place in tree.positions.items()}
        references |= {identity + last: found for identity, found in tree.references.items()}
        last = max(last, *types, *positions)

    def balanced(first: int, behind: int) -> Node:
        # The parser balances, so that long conjunctions are not deep.
        nonlocal last
        if behind - first == 1:
            return roots[first]
        middle = (first + behind + 1) // 2
        args = balanced(first, middle), balanced(middle, behind)
        last += 1
        types[last], references[last] = _BOOL, ("logical_and",)
        return Call("_&&_", args, id=last)

    return CheckedTree(root=balanced(0, len(roots)), types=types, positions=positions, references=references)
