"""Compiles a CEL expression as the API server does, and says what is wrong and what it reads.

It is parsed and checked as cel-go does it (`parsing`, `checker`). Only the words for syntax errors are the engine's
(`wording`).

Portable expressions mean the same to every supported server, and most selectors are portable. They use nothing but
the fields of `device` that all releases have, comparison, the older string functions, quantities and versions, and no
list, macro or message, on whose types releases differ. One compilation then answers for all; that it does is held
against compilation in every environment (tests/unit/kubernetes/cel/test_portable.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal

from dra_infra.kubernetes.api.limits import MAX_COST, MAX_EXPRESSION
from dra_infra.kubernetes.cel.cost import estimate_cost
from dra_infra.kubernetes.cel.diagnostics import (
    Diagnostic,
    diagnose,
    find_hint,
    in_order,
    runtime_name,
    write_report,
)
from dra_infra.kubernetes.cel.environment import (
    DEFAULT,
    Environment,
    has_bindings,
    has_lists,
)
from dra_infra.kubernetes.cel.literals import Findings, inspect
from dra_infra.kubernetes.cel.masking import mask, unmask
from dra_infra.kubernetes.cel.reads import NOTHING_KNOWN, Known, Read, find_reads, join_reads
from dra_infra.kubernetes.cel.source_text import join, split_conjunction
from dra_infra.kubernetes.cel.tree import (
    Call,
    CelType,
    CheckedTree,
    Const,
    Ident,
    Node,
    Select,
    call_deeply,
    children,
)
from dra_infra.kubernetes.problems import Problem

_VARIABLES: Final = frozenset({"device.driver", "device.attributes", "device.capacity"})
_FUNCTIONS: Final = frozenset(
    {
        "_&&_",
        "_||_",
        "!_",
        "_==_",
        "_!=_",
        "_<_",
        "_<=_",
        "_>_",
        "_>=_",
        "_[_]",
        "@in",
        "quantity",
        "semver",
        "compareTo",
        "isGreaterThan",
        "isLessThan",
        "contains",
        "startsWith",
        "endsWith",
        "lowerAscii",
        "upperAscii",
    }
)
_BOOL: Final = CelType("bool")


def is_portable(tree: CheckedTree) -> bool:
    """Checks that every supported server says the same of the expression: that it is a test, and its cost.

    Args:
        tree: What it compiles to. Names in backticks, which older parsers refuse, do not show in it.
    """
    return tree.type_of(tree.root) == _BOOL and _is_portable(tree.root)


def _is_portable(node: Node) -> bool:
    if isinstance(node, Const):
        return True
    if isinstance(node, Ident):
        return node.name in _VARIABLES
    if isinstance(node, Select) or (isinstance(node, Call) and node.function in _FUNCTIONS):
        return all(map(_is_portable, children(node)))
    return False


_TOO_DEEP: Final = "the expression is nested too deeply to be checked here"
_ESCAPES: Final = 37
"""First minor whose parser takes names in backticks."""

Kind = Literal["", "FieldValueInvalid", "FieldValueForbidden", "FieldValueTooLong", "InternalError"]

_DERIVED: Final = frozenset(
    {
        "bool",
        "int",
        "string",
        "wrapper(bool)",
        "wrapper(int)",
        "wrapper(string)",
        "google.protobuf.Any",
        "dyn",
        "kubernetes.Semver",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An expression as the server knows it without any device: its tree, cost and problems.

    Args:
        problems: Errors, and warnings for reads without a guard and for what is not decided here; sorted.
        reads: Attributes and capacities that it reads.
        return_type: As cel-go prints it: `bool`, or `dyn` or `google.protobuf.Any` when only a device can tell; empty
            when it does not compile.
        kind: Type of the cause in the API server's answer; empty when it accepts the expression, or when that is not
            known.
        detail: What the API server puts behind the bad value.
        undecided: Why the server's verdict is not known; empty when it is.
        cost: As the API server estimates it; None when it does not compile.
        portable: Whether it means the same to every supported server, but for names in backticks.
        known: What the result of a whole tree says about what a device has; of clauses each has its own.
        trees: The checked tree, or those of the clauses that `&&` joins, each with its offset; empty when there is none.
    """

    problems: tuple[Problem, ...]
    reads: tuple[Read, ...] = ()
    return_type: str = ""
    kind: Kind = ""
    detail: str = ""
    undecided: str = ""
    cost: int | None = None
    portable: bool = False
    known: Known = field(default=NOTHING_KNOWN, repr=False, compare=False)
    trees: tuple[tuple[int, CheckedTree], ...] = field(default=(), repr=False, compare=False)

    @property
    def tree(self) -> CheckedTree | None:
        """The checked tree of the whole, None when there is none; it is put together on each call."""
        if len(self.trees) > 1:
            return call_deeply(join, self.trees)
        return self.trees[0][1] if self.trees else None

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that make the server refuse the expression."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def check_expression(text: str, *, path: str = "", environment: Environment = DEFAULT) -> Checked:
    """Check a selector expression.

    Args:
        text: The expression.
        path: Where it is written, for the problems.
        environment: The release that compiles it, and whether it is new there.
    """
    return _located(_verdict(text, environment), path)


@lru_cache(maxsize=4096)
def _verdict(text: str, environment: Environment) -> Checked:
    # What is in backticks is not in the tree as it was written.
    if environment != DEFAULT and "`" not in text:
        checked = _check(text, DEFAULT, derived=False)
        # A compilation costs most of the time, and a program is checked on two releases.
        if checked.portable and (checked.cost or 0) <= MAX_COST:
            return checked
    return _check(text, environment, derived=False)


def check_derived(text: str, *, path: str = "", environment: Environment = DEFAULT) -> Checked:
    """Check the expression of a derived attribute, whose result may be any value of an attribute (from 1.37 on)."""
    return _located(_check(text, environment, derived=True), path)


def _located(checked: Checked, path: str) -> Checked:
    if not path:
        return checked
    return replace(checked, problems=tuple(replace(problem, path=path) for problem in checked.problems))


@lru_cache(maxsize=4096)
def _check(text: str, environment: Environment, *, derived: bool) -> Checked:
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        message = "the expression holds half of a character pair"
        return _refused("FieldValueInvalid", "cel-syntax", message, "write whole characters")
    if length > MAX_EXPRESSION:
        return replace(
            _refused(
                "FieldValueTooLong",
                "cel-too-long",
                f"the expression has {length} bytes, at most {MAX_EXPRESSION} are allowed",
                "split it into several selectors, all of which must be true",
            ),
            detail=f"may not be more than {MAX_EXPRESSION} bytes",
        )
    return (None if derived else _join(text, environment)) or _compile(text, environment, derived=derived)


def _join(text: str, environment: Environment) -> Checked | None:
    """The verdict on a conjunction by those on its clauses, None where the whole has to be compiled."""
    clauses = split_conjunction(text)
    checks = [_check_clause(clause.text, environment) for clause in clauses]
    known = [check for check in checks if check is not None]
    if not known or len(known) < len(checks):
        return None
    cost = sum(check.cost or 0 for check, _ in known)
    if cost > MAX_COST:
        return None
    reads = join_reads([(check.reads, facts) for check, facts in known])
    return Checked(
        problems=tuple(sorted([_unguarded(read) for read in reads if not read.guarded])),
        reads=reads,
        return_type="bool",
        cost=cost,
        portable=all(check.portable for check, _ in known),
        trees=tuple(
            [(clause.offset, check.trees[0][1]) for clause, (check, _) in zip(clauses, known, strict=True)]
        ),
    )


@lru_cache(maxsize=4096)
def _check_clause(text: str, environment: Environment) -> tuple[Checked, Known] | None:
    """The verdict on a clause, with what it is known to read; None when it does more than compile to a bool."""
    checked = _compile(text, environment, derived=False)
    if not checked.trees or checked.kind or checked.undecided or checked.return_type != "bool":
        return None
    return checked, checked.known


def _compile(text: str, environment: Environment, *, derived: bool) -> Checked:
    try:
        return _compile_once(text, environment, derived=derived)
    except RecursionError:
        pass
    try:
        return call_deeply(_compile_once, text, environment, derived=derived)
    except RecursionError:
        return _unknown(_TOO_DEEP)


def _compile_once(text: str, environment: Environment, *, derived: bool) -> Checked:
    tree = _find_masked(text, environment) or find_tree(text, environment)
    if isinstance(tree, Checked):
        return tree
    findings = inspect(tree)
    return refuse_literals(text, findings) or _judge(tree, findings, environment, derived=derived)


def _find_masked(text: str, environment: Environment) -> CheckedTree | None:
    """The tree by that of the text without its quantities; None where it has none, or is refused."""
    masked = mask(text)
    tree = _compile_masked(masked.text, environment) if masked is not None else None
    return unmask(tree, masked.values) if masked is not None and isinstance(tree, CheckedTree) else None


@lru_cache(maxsize=1024)
def _compile_masked(text: str, environment: Environment) -> CheckedTree | Checked:
    return find_tree(text, environment)


def find_tree(text: str, environment: Environment) -> CheckedTree | Checked:
    """The tree as cel-go parses and checks it, or what it says where it does not.

    Raises:
        RecursionError: When it is nested deeper than is gone here.
    """
    # Takes some milliseconds to load, and not every input holds an expression.
    from dra_infra.kubernetes.cel.checker import find_types
    from dra_infra.kubernetes.cel.parsing.parser import parse
    from dra_infra.kubernetes.cel.parsing.tokens import SyntaxRefusedError

    try:
        parsed = parse(
            text,
            escapes=environment.minor >= _ESCAPES,
            sorts=has_lists(environment),
            binds=has_bindings(environment),
        )
    except SyntaxRefusedError:
        return _refuse_syntax(text, environment)
    if parsed.errors:
        return _failed(in_order(parsed.errors), text)
    typed = find_types(text, parsed.root, parsed.positions, environment)
    return _failed(in_order(typed.errors), text) if typed.errors else typed.tree


def _refuse_syntax(text: str, environment: Environment) -> Checked:
    from dra_infra.kubernetes.cel.parsing.tokens import find_escaped
    from dra_infra.kubernetes.cel.wording import find_syntax_errors

    errors = find_syntax_errors(text)
    if not errors:
        return _unknown("the expression does not follow the grammar")
    escaped = find_escaped(text) if environment.minor < _ESCAPES else []
    refused = [diagnose(text, offset, "unsupported syntax: '`'") for offset in escaped]
    return _failed(in_order([*errors, *refused]), text)


def refuse_literals(text: str, findings: Findings) -> Checked | None:
    """Returns the problem that the server has with literals that are wrong in a tree whose types are right; None where nothing is."""
    if findings.crash:
        message = "the API server fails on an optional element whose type only a device knows"
        return replace(_refused("InternalError", "cel-type", message, "write optional.of(...)"), detail="")
    if findings.undecided:
        return _unknown(findings.undecided)
    if findings.errors:
        return _failed(in_order(diagnose(text, *error) for error in findings.errors), text)
    return None


def _judge(tree: CheckedTree, findings: Findings, environment: Environment, *, derived: bool) -> Checked:
    refusal = _refuse_type(tree.type_of(tree.root), environment, derived=derived)
    if refusal:
        hint = "" if derived else "compare it with something, so that the result is true or false"
        return _refused("FieldValueInvalid", "cel-type", refusal, hint)
    if findings.panics:
        message = f"the API server fails on it: {findings.refusal}"
        hint = "write keys of a map as texts or numbers"
        return replace(_refused("InternalError", "cel-type", message, hint), detail="")
    if findings.refusal:
        message = f"program instantiation failed: {findings.refusal}"
        hint = "a literal is converted or matched ahead of every device, so it has to be right"
        return _refused("InternalError", "cel-type", message, hint)
    reads, known = find_reads(tree)
    problems = [_unguarded(read) for read in reads if not read.guarded]
    cost = estimate_cost(tree, environment)
    # The scheduler, which compiles stored expressions, looks at what they really cost when they run.
    is_costly = cost > MAX_COST and not environment.stored
    if is_costly:
        problems.append(_too_costly(cost))
    return Checked(
        problems=tuple(sorted(problems)),
        kind="FieldValueForbidden" if is_costly else "",
        detail="too complex, exceeds cost limit" if is_costly else "",
        reads=reads,
        return_type=runtime_name(tree.type_of(tree.root)),
        cost=cost,
        portable=is_portable(tree),
        known=known,
        trees=((0, tree),),
    )


def _too_costly(cost: int) -> Problem:
    return Problem(
        path="",
        code="cel-too-costly",
        message=f"the API server estimates a cost of {cost:,}, at most {MAX_COST:,} are allowed",
        hint="test with ==, or bound what loops go through",
    )


def _refuse_type(found: CelType, environment: Environment, *, derived: bool) -> str:
    if not derived:
        if str(found) in environment.result_types:
            return ""
        return f"must evaluate to bool or the unknown type, not {runtime_name(found)}"
    lists = environment.stored or environment.list_attributes
    scalar = found.parameters[0] if lists and found.name == "list" else found
    if runtime_name(scalar) in _DERIVED:
        return ""
    wanted = "a primitive scalar (string, integer, boolean, semver)"
    return f"must evaluate to {wanted}{' or a list of these scalars' if lists else ''}, not {runtime_name(found)}"


def _failed(diagnostics: tuple[Diagnostic, ...], text: str) -> Checked:
    problems = {
        Problem(
            path="",
            code="cel-syntax" if diagnostic.is_syntax else "cel-type",
            message=f"{diagnostic.message} (at {diagnostic.line}:{diagnostic.column})",
            hint=find_hint(diagnostic.message, text),
        )
        for diagnostic in diagnostics
    }
    return Checked(
        problems=tuple(sorted(problems)),
        kind="FieldValueInvalid",
        detail=f"compilation failed: {write_report(diagnostics, text)}",
    )


def _refused(kind: Kind, code: str, message: str, hint: str) -> Checked:
    problem = Problem(path="", code=code, message=message, hint=hint)
    return Checked(problems=(problem,), kind=kind, detail=message)


def _unknown(message: str) -> Checked:
    problem = Problem(
        path="",
        code="cel-not-decided-here",
        message=f"{message}, so whether the API server takes it is not known",
        hint="simplify the expression, or let the API server decide",
        severity="warning",
    )
    return Checked(problems=(problem,), undecided=message)


def _unguarded(read: Read) -> Problem:
    place = f'device.{"attributes" if read.kind == "attribute" else "capacity"}["{read.domain}"]'
    return Problem(
        path="",
        code="cel-unguarded-read",
        message=f"{read.kind} {read.domain}/{read.identifier} is read without a test that it exists: "
        "on a device that lacks it, the whole pod is not scheduled",
        hint=f"put has({place}.{read.identifier}) && in front of the test that reads it",
        severity="warning",
    )
