"""Splits expressions into the clauses that `&&` joins, and puts their trees together.

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
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.tree import Call, CelType, CheckedTree, Node, renumbered

_TOKENS: Final = re.compile(r"""//|"[^"\n]*"|'[^'\n]*'|["'\\`()\[\]{}]|&&|\|\||\.?\?""")
_TRIPLE: Final = ('"""', "'''", "\\")
_BOOL: Final = CelType("bool")


class Clause(NamedTuple):
    """A clause and its offset in the expression, in code points."""

    offset: int
    text: str


def split_conjunction(text: str) -> tuple[Clause, ...]:
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
