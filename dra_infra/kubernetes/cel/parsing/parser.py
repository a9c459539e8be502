"""Parses expressions into trees with macros expanded, as the server's parser does.

Only what the grammar takes is parsed. What it does not take raises `SyntaxRefusedError`: the words for that depend on how a
generated parser recovers, and come from the engine's, which is generated from the same grammar (`wording`).

Upstream: `parser/gen/CEL.g4`, `parser/parser.go` and `parser/helper.go` of cel-go.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.diagnostics import Diagnostic, diagnose
from dra_infra.kubernetes.cel.parsing.macros import BIND, METHODS, Expand, Expansion, MacroError
from dra_infra.kubernetes.cel.parsing.tokens import (
    END,
    LiteralError,
    SyntaxRefusedError,
    Token,
    read_literal,
    tokenize,
)
from dra_infra.kubernetes.cel.tree import Call, Const, Entry, Ident, ListLiteral, MapLiteral, Node, Select

MAX_DEPTH: Final = 250
"""How deep a rule of the grammar may stand in itself, and how many operations on their operands may stand in each other; chains
of operators and of members are such operations."""

_RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
_RELATION, _SUM, _PRODUCT = 1, 2, 3
_OPERATORS: Final = {
    **{sign: (_RELATION, f"_{sign}_") for sign in ("<", "<=", ">=", ">", "==", "!=")},
    "in": (_RELATION, "@in"),
    **{sign: (_SUM, f"_{sign}_") for sign in "+-"},
    **{sign: (_PRODUCT, f"_{sign}_") for sign in "*/%"},
}
_NUMBERS: Final = ("int", "float")


class Parsed(NamedTuple):
    """Tree of a parsed expression.

    Args:
        root: The tree; it means nothing when there are errors.
        positions: Offset in code points by number of a node.
        errors: What the server's parser refuses beyond the grammar.
    """

    root: Node
    positions: dict[int, int]
    errors: tuple[Diagnostic, ...]


def parse(text: str, *, escapes: bool, sorts: bool, binds: bool = True) -> Parsed:
    """Parses an expression.

    Args:
        text: The expression.
        escapes: Whether names in backticks are taken.
        sorts: Whether the macro sortBy() is there.
        binds: Whether the macro cel.bind() is there.

    Raises:
        SyntaxRefusedError: When it does not follow the grammar.
        RecursionError: When it is nested deeper than this parser goes, or its macros copy more than that.
    """
    parser = _Parser(text, escapes=escapes, sorts=sorts, binds=binds)
    try:
        root = parser.start()
    except _TooDeepError as error:
        return Parsed(Const("null_value", None), {}, (Diagnostic(-1, 0, str(error)),))
    return Parsed(root, parser.positions, tuple(parser.errors))


_MAX_COPIES: Final = 16_384
"""Nodes that macros may copy. optMap and optFlatMap copy their target, so that each in a row doubles what is before it:
thirteen of them are 181 characters and 98,000 nodes."""


class _TooDeepError(Exception):
    pass


class _Depths:
    """How deep the rules stand in themselves (recursionListener in parser/parser.go of cel-go)."""

    __slots__ = ("expression", "relation", "term")

    def __init__(self) -> None:
        self.expression = self.relation = self.term = 0


class _Parser:
    def __init__(self, text: str, *, escapes: bool, sorts: bool, binds: bool) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._place = 0
        self._escapes = escapes
        self._sorts = sorts
        self._binds = binds
        self._last = 0
        self._copies = 0
        self._call = 0
        self._depths = _Depths()
        # Operations on their operands that stand in each other in what was parsed last.
        self._height = 0
        self.positions: dict[int, int] = {}
        self.errors: list[Diagnostic] = []

    def start(self) -> Node:
        root = self._expression()
        self._expect(END)
        if self._height > MAX_DEPTH:
            if self.errors:
                # Those that the server's visitor meets before it gives up stand beside, and the others do not.
                raise RecursionError
            # checkAndIncrementRecursionDepth in parser/parser.go of cel-go.
            raise _TooDeepError("max recursion depth exceeded")
        return root

    def number(self) -> int:
        """A new number, at the place of the macro that is being expanded."""
        return self._at(self._call)

    def number_like(self, node: Node) -> int:
        """A new number for a copy of *node*, at its place.

        Raises:
            RecursionError: When macros copied more than is gone along with here.
        """
        self._copies += 1
        if self._copies > _MAX_COPIES:
            raise RecursionError
        return self._at(self.positions[node.id])

    def _at(self, offset: int) -> int:
        self._last += 1
        self.positions[self._last] = offset
        return self._last

    def _next(self) -> Token:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _take(self, kind: str) -> Token | None:
        token = self._tokens[self._place]
        if token.kind != kind:
            return None
        self._place += 1
        return token

    def _expect(self, kind: str) -> Token:
        token = self._take(kind)
        if token is None:
            raise SyntaxRefusedError
        return token

    def _refuse(self, offset: int, message: str) -> Node:
        self.errors.append(diagnose(self._text, offset, message))
        return Const("null_value", None, self._at(offset))

    def _expression(self) -> Node:
        depths = self._depths
        depths.expression += 1
        self._check(depths)
        node = self._alternatives()
        question = self._take("?")
        if question is not None:
            number = self._at(question.start)
            height = self._height
            then = self._alternatives()
            height = max(height, self._height)
            self._expect(":")
            node = Call("_?_:_", (node, then, self._expression()), None, number)
            self._height = max(height, self._height) + 1
        depths.expression -= 1
        return node

    def _alternatives(self) -> Node:
        """Clauses that `&&` joins, in alternatives that `||` joins."""
        terms = [self._clauses()]
        signs: list[int] = []
        height = self._height
        while (sign := self._take("||")) is not None:
            terms.append(self._clauses())
            signs.append(self._at(sign.start))
            height = max(height, self._height)
        self._height = height
        return _balanced("_||_", terms, signs, 0, len(signs) - 1) if signs else terms[0]

    def _clauses(self) -> Node:
        terms = [self._operation(_RELATION)]
        signs: list[int] = []
        height = self._height
        while (sign := self._take("&&")) is not None:
            terms.append(self._operation(_RELATION))
            signs.append(self._at(sign.start))
            height = max(height, self._height)
        self._height = height
        return _balanced("_&&_", terms, signs, 0, len(signs) - 1) if signs else terms[0]

    def _operation(self, level: int) -> Node:
        """A relation, sum or product, and what binds closer."""
        depths = self._depths
        relation, term = depths.relation, depths.term
        if level == _RELATION:
            depths.relation += 1
        depths.term += 1
        self._check(depths)
        node = self._unary()
        height = self._height
        while (found := _OPERATORS.get(self._tokens[self._place].kind)) is not None and found[0] >= level:
            sign = self._next()
            if found[0] == _RELATION:
                # What stands to the left of it is behind the parser, sums and all.
                depths.term = term
                # The operand on the right is a relation of its own to the grammar.
                depths.relation += 1
                self._check(depths)
                right = self._operation(_SUM)
                depths.relation -= 1
            else:
                right = self._operation(found[0] + 1)
            node = Call(found[1], (node, right), None, self._at(sign.start))
            height = max(height, self._height) + 1
        depths.relation = relation
        depths.term = term
        self._height = height
        return node

    @staticmethod
    def _check(depths: _Depths) -> None:
        if max(depths.expression, depths.relation, depths.term) > MAX_DEPTH:
            raise _TooDeepError(f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _unary(self) -> Node:
        first = self._tokens[self._place]
        if first.kind not in ("!", "-"):
            return self._member()
        if first.kind == "-" and self._tokens[self._place + 1].kind in _NUMBERS:
            return self._member()
        count = 0
        while self._take(first.kind) is not None:
            count += 1
        # A `-` in front of a number belongs to the number, unless others stand in front of it.
        number = self._at(first.start)
        operand = self._member()
        return Call(f"{first.kind}_", (operand,), None, number) if count % 2 else operand

    def _member(self) -> Node:
        node = self._primary()
        height = self._height
        while True:
            token = self._tokens[self._place]
            if token.kind == ".":
                self._place += 1
                node = self._select(node, token)
            elif token.kind == "[":
                self._place += 1
                function = "_[?_]" if self._take("?") is not None else "_[_]"
                number = self._at(token.start)
                node = Call(function, (node, self._expression()), None, number)
                self._expect("]")
            else:
                self._height = height
                return node
            height = max(height, self._height) + 1

    def _select(self, node: Node, dot: Token) -> Node:
        self._height = 0
        is_optional = self._take("?") is not None
        field = self._next()
        if field.kind not in ("name", "escaped"):
            raise SyntaxRefusedError
        if field.kind == "name" and not is_optional:
            bracket = self._take("(")
            if bracket is not None:
                return self._method(node, field.text, bracket)
        name = self._name(field)
        number = self._at(dot.start)
        if not is_optional:
            return Select(node, name, test_only=False, id=number)
        # No error is about the field alone, so it has no place of its own.
        return Call("_?._", (node, Const("string_value", name, self._at(0))), None, number)

    def _name(self, field: Token) -> str:
        if field.kind == "name":
            return field.text
        if not self._escapes:
            self._refuse(field.start, "unsupported syntax: '`'")
            return ""
        return field.text[1:-1]

    def _arguments(self) -> tuple[Node, ...]:
        self._height = 0
        if self._take(")") is not None:
            return ()
        found = [self._expression()]
        height = self._height
        while self._take(",") is not None:
            found.append(self._expression())
            height = max(height, self._height)
        self._expect(")")
        self._height = height
        return tuple(found)

    def _method(self, target: Node, name: str, bracket: Token) -> Node:
        args = self._arguments()
        expand = METHODS.get((name, len(args)))
        if expand is not None and (self._sorts or name != "sortBy"):
            return self._expand(expand, target, args, bracket)
        is_bind = (name, len(args)) == BIND[:2] and isinstance(target, Ident) and target.name == "cel"
        if is_bind and self._binds:
            return self._expand(BIND[2], target, args, bracket)
        return Call(name, args, target, self._at(bracket.start))

    def _expand(self, expand: Expand, target: Node, args: tuple[Node, ...], bracket: Token) -> Node:
        self._call = bracket.start
        try:
            return expand(Expansion(self), target, args)
        except MacroError as error:
            return self._refuse(self.positions[error.node.id], error.message)

    def _primary(self) -> Node:
        self._height = 0
        token = self._next()
        match token.kind:
            case "name":
                return self._named(token)
            case "(":
                node = self._expression()
                self._expect(")")
                return node
            case ".":
                return self._named(self._expect("name"), first=token)
            case "[":
                return self._list(token)
            case "{":
                return MapLiteral(self._entries(is_message=False), "", self._at(token.start))
            case "-":
                return self._literal(token, "-")
        return self._literal(token)

    def _list(self, token: Token) -> Node:
        number = self._at(token.start)
        elements: list[Node] = []
        optional: list[int] = []
        height = 0
        while self._tokens[self._place].kind not in ("]", ","):
            if self._take("?") is not None:
                optional.append(len(elements))
            elements.append(self._expression())
            self._height = height = max(height, self._height)
            if self._take(",") is None or self._tokens[self._place].kind == "]":
                self._expect("]")
                return ListLiteral(tuple(elements), tuple(optional), number)
        if not elements:
            self._take(",")
        self._expect("]")
        return ListLiteral(tuple(elements), tuple(optional), number)

    def _entries(self, *, is_message: bool) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        height = 0
        while self._tokens[self._place].kind not in ("}", ","):
            is_optional = self._take("?") is not None
            key = self._field() if is_message else self._expression()
            height = max(height, self._height)
            number = self._at(self._expect(":").start)
            entries.append(Entry(key, self._expression(), is_optional, number))
            self._height = height = max(height, self._height)
            if self._take(",") is None or self._tokens[self._place].kind == "}":
                self._expect("}")
                return tuple(entries)
        if not entries:
            self._take(",")
        self._expect("}")
        return tuple(entries)

    def _field(self) -> Node:
        token = self._next()
        if token.kind not in ("name", "escaped"):
            raise SyntaxRefusedError
        return Const("string_value", self._name(token))

    def _named(self, token: Token, first: Token | None = None) -> Node:
        """A variable, the call of a function, or a message."""
        start = (first or token).start
        dot = "." if first is not None else ""
        last = self._place
        while self._tokens[last].kind == "." and self._tokens[last + 1].kind == "name":
            last += 2
        if self._tokens[last].kind == "{":
            name = "".join(each.text for each in self._tokens[self._place : last])
            self._place = last
            number = self._at(self._next().start)
            return MapLiteral(self._entries(is_message=True), f"{dot}{token.text}{name}", number)
        bracket = self._take("(")
        if token.text in _RESERVED:
            if bracket is not None:
                self._arguments()
            return self._refuse(start, f"reserved identifier: {token.text}")
        if bracket is None:
            return Ident(f"{dot}{token.text}", self._at(token.start))
        args = self._arguments()
        if (token.text, len(args), dot) == ("has", 1, ""):
            return self._has(args[0], bracket)
        return Call(f"{dot}{token.text}", args, None, self._at(bracket.start))

    def _has(self, argument: Node, bracket: Token) -> Node:
        if not isinstance(argument, Select):
            return self._refuse(self.positions[argument.id], "invalid argument to has() macro")
        return Select(argument.operand, argument.field, test_only=True, id=self._at(bracket.start))

    def _literal(self, token: Token, sign: str = "") -> Node:
        start = token.start
        if sign:
            token = self._next()
            if token.kind not in _NUMBERS:
                raise SyntaxRefusedError
        try:
            kind, value = read_literal(token, sign)
        except LiteralError as error:
            return self._refuse(start, str(error))
        return Const(kind, value, self._at(start))


def _balanced(function: str, terms: list[Node], numbers: list[int], first: int, last: int) -> Node:
    """The terms as a balanced tree, so that long conjunctions are not deep."""
    middle = (first + last + 1) // 2
    left = terms[middle] if middle == first else _balanced(function, terms, numbers, first, middle - 1)
    right = terms[middle + 1] if middle == last else _balanced(function, terms, numbers, middle + 1, last)
    return Call(function, (left, right), None, numbers[middle])
