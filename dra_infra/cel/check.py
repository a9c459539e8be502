"""Compiles an expression as the API server compiles it, and says what is wrong and what it reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from dra_infra.cel.declare import DEVICE_FIELDS, check_environment
from dra_infra.cel.diagnostics import Diagnostic, read_report, write_report
from dra_infra.cel.literals import check_instantiation, check_literals, find_undecided
from dra_infra.cel.reads import Read, find_reads
from dra_infra.cel.tree import CheckedTree
from dra_infra.cel.wire import decode_checked
from dra_infra.errors import Problem

MAX_LENGTH: Final = 10 * 1024
"""Bytes of UTF-8 (CELSelectorExpressionMaxLength in k8s.io/api/resource/v1)."""

_STRING: Final = (
    r"(?:[rR][bB]?|[bB][rR])(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n]*\"|'[^'\n]*')"
    r"|\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\"|'''(?:[^\\]|\\[\s\S])*?'''"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
)
_SPELLINGS = re.compile(
    rf"(?P<kept>\w+(?={_STRING})|{_STRING}|//[^\n]*)"
    rf"|(?P<has>\bhas\s*\(\s*device\s*\.\s*(?:{'|'.join(DEVICE_FIELDS)})\s*\))"
    r"|(?P<exists>\bexists_one)(?=\s*\(\s*\w+\s*,\s*\w+\s*,)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is known of an expression without any device.

    Args:
        problems: Errors, and warnings for reads without a guard and for what is not decided here; sorted.
        reads: Attributes and capacities that it reads.
        return_type: `bool`, or `dyn` when only a device can tell; empty when it does not compile.
        report: The API server's text, empty when it accepts the expression.
        undecided: Why the server's verdict is not known; empty when it is.
        tree: The checked tree, None when there is none.
    """

    problems: tuple[Problem, ...]
    reads: tuple[Read, ...] = ()
    return_type: str = ""
    report: str = ""
    undecided: str = ""
    tree: CheckedTree | None = field(default=None, repr=False, compare=False)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that make the server refuse the expression."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def check_expression(text: str, *, path: str = "") -> Checked:
    """Check a selector expression in the environment of a stored one in Kubernetes 1.37.

    Args:
        text: The expression.
        path: Where it is written, for the problems.
    """
    checked = _check(text)
    if not path:
        return checked
    return replace(checked, problems=tuple(replace(problem, path=path) for problem in checked.problems))


@lru_cache(maxsize=4096)
def _check(text: str) -> Checked:
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        return _refused(
            "cel-syntax", "the expression holds half of a character pair", "write whole characters"
        )
    if length > MAX_LENGTH:
        return _refused(
            "cel-too-long",
            f"the expression has {length} bytes, at most {MAX_LENGTH} are allowed",
            "split it into several selectors, all of which must be true",
        )
    try:
        serialized = check_environment().compile(_SPELLINGS.sub(_respell, text)).serialize()
    except RuntimeError as error:
        if "recursion" in str(error):
            return _unknown("the expression is nested too deeply to be checked here")
        return _failed(read_report(str(error), text), text)
    tree = decode_checked(serialized)
    findings = tuple(_diagnostic(text, offset, message) for offset, message in check_literals(tree))
    if findings:
        return _failed(findings, text)
    return _judge(tree)


def _judge(tree: CheckedTree) -> Checked:
    return_type = str(tree.type_of(tree.root))
    if return_type not in ("bool", "dyn"):
        message = f"must evaluate to bool or the unknown type, not {return_type}"
        hint = "compare it with something, so that the result is true or false"
        return replace(_refused("cel-type", message, hint), report=message)
    instantiation = check_instantiation(tree)
    if instantiation:
        message = f"program instantiation failed: {instantiation}"
        hint = "a literal is converted or matched ahead of every device, so it has to be right"
        return replace(_refused("cel-type", message, hint), report=message)
    reads = find_reads(tree)
    undecided = find_undecided(tree)
    problems = [_unguarded(read) for read in reads if not read.guarded]
    if undecided:
        problems += _unknown(undecided).problems
    return Checked(
        problems=tuple(sorted(problems)),
        reads=reads,
        return_type=return_type,
        undecided=undecided,
        tree=None if undecided else tree,
    )


def _respell(match: re.Match[str]) -> str:
    """Write what only Kubernetes' parser takes so that the engine takes it, in the same width.

    A field of `device` is a variable of the engine, and has() of a variable has no meaning there; the fields are
    always present. The engine lacks the older spelling of existsOne with two variables.
    """
    if match["has"]:
        spaces = " " * (len(match["has"]) - len("true"))
        return "".join(
            [
                "true",
                *(old if old == "\n" else new for old, new in zip(match["has"][4:], spaces, strict=True)),
            ]
        )
    return "existsOne " if match["exists"] else match["kept"]


def _failed(diagnostics: tuple[Diagnostic, ...], text: str) -> Checked:
    problems = {
        Problem(
            path="",
            code="cel-syntax" if diagnostic.is_syntax else "cel-type",
            message=f"{diagnostic.message} (at {diagnostic.line}:{diagnostic.column})",
            hint=diagnostic.hint,
        )
        for diagnostic in diagnostics
    }
    return Checked(
        problems=tuple(sorted(problems)), report=f"compilation failed: {write_report(diagnostics, text)}"
    )


def _refused(code: str, message: str, hint: str) -> Checked:
    return Checked(problems=(Problem(path="", code=code, message=message, hint=hint),))


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
        hint=f"put has({place}.{read.identifier}) && in front",
        severity="warning",
    )


def _diagnostic(text: str, offset: int, message: str) -> Diagnostic:
    before = text[:offset]
    return Diagnostic(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1, message)
