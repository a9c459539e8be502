"""The `dra-infra explain` command: says why a pod or claim gets no devices, and what the code of a problem means.

The texts of codes are those of docs/errors, which a contract test writes into `codes.md` of the package.
"""

from __future__ import annotations

import difflib
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Final

import click

from dra_infra.cli.explain_questions import Found, read_live, read_offline
from dra_infra.cli.explain_report import Report, describe, in_python, to_json
from dra_infra.cli.printing import print_problems, progress, write_json, write_lines
from dra_infra.codes import CODES
from dra_infra.errors import Problem, ProblemsError
from dra_infra.explanation.causes import find_causes
from dra_infra.explanation.explain import explain
from dra_infra.explanation.records import Explanation
from dra_infra.explanation.slips import find_slip_problems

_COLUMNS: Final = 100
_CODE: Final = "    "
"""Indentation of code in a text."""


def run(
    name: str,
    path: Path | None,
    *,
    namespace: str | None,
    fleet: str | None,
    snapshot: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    is_deep: bool,
    kinds: Path | None,
    as_json: bool,
) -> int:
    """Print why a pod or claim fits or not; 0 when it fits, 1 when not, or when it cannot be told in the time.

    What fits when node pools grow within their limits counts as fitting.
    A name alone that is a code is the code, whose meaning is printed.

    Raises:
        ProblemsError: When there is nothing to answer.
        click.BadParameter: When options do not go together.
    """
    files = path or fleet or snapshot
    if name in CODES and not (files or kubeconfig or context or namespace):
        return tell_code(name, as_json=as_json)
    if files and (kubeconfig or context):
        raise click.BadParameter("files are read or a cluster, not both", param_hint="--kubeconfig")
    is_live = path is None and fleet is None and snapshot is None
    with progress() as tell:
        if is_live:
            try:
                found = read_live(
                    name, namespace, kubeconfig, context, kubernetes=kubernetes, gates=gates, tell=tell
                )
            except ProblemsError as error:
                raise _with_nearest_code(error, name) from None
        else:
            found = read_offline(
                name,
                path,
                namespace=namespace,
                fleet=fleet,
                snapshot=snapshot,
                kubernetes=kubernetes,
                gates=gates,
                stack=stack,
                config=config,
                kinds=kinds,
                timeout=timeout,
            )
        tell("explaining")
        end = time.monotonic() + timeout
        answer, causes = _answer(found, is_late=lambda: time.monotonic() > end, is_deep=is_deep)
    asking = found.asking
    if answer is not None and answer.verdict == "does-not-fit" and found.fits:
        # Here each pod takes the first node that it can; placement tries more orders.
        answer, asking = None, replace(asking, settled=found.fits)
    report = Report(
        asking=asking,
        causes=tuple(dict.fromkeys(causes)),
        answer=answer and in_python(answer, found.made),
        where=found.where,
        joint=found.joint,
        growth=found.growth,
        undecided=found.undecided,
        is_deep=is_deep,
    )
    print_problems(found.not_seen, with_count=False)
    if as_json:
        write_json(to_json(report, found.not_seen))
    else:
        write_lines(describe(report))
    return 0 if report.opens_gate else 1


def _answer(
    found: Found, *, is_late: Callable[[], bool], is_deep: bool
) -> tuple[Explanation | None, list[Problem]]:
    """Returns what the allocator says, None where it is not asked, and what is wrong around."""
    question, answer = found.asking.question, None
    causes = list(found.asking.causes)
    if question is not None:
        causes += find_causes(question)
        # Of a claim that is not there no change can be said to be enough.
        is_lost = any(each.code == "claim-not-known" for each in causes)
        if question.claims or not (question.eligible or is_lost):
            answer = explain(question, is_late=is_late, is_deep=is_deep, refusal=found.refusal)
        if answer is not None and answer.verdict != "fits":
            causes += find_slip_problems(question)
    if answer is not None and found.undecided:
        # The allocator answered without what is not known.
        answer = replace(answer, verdict="not-decided", error=None)
    return answer, causes


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeText:
    """Explanation of a problem's code.

    Args:
        area: The page of docs/errors that has it.
        text: What it means and what to do; Markdown without links.
    """

    area: str
    text: str


def read_codes() -> dict[str, CodeText]:
    """All codes with their texts, as the package ships them."""
    shipped = resources.files("dra_infra").joinpath("codes.md").read_text(encoding="utf-8")
    _, *areas = re.split(r"^# ([a-z-]+)$", shipped, flags=re.MULTILINE)
    found = {}
    for area, sections in zip(areas[::2], areas[1::2], strict=True):
        _, *parts = re.split(r"^## `([a-z0-9-]+)`$", sections, flags=re.MULTILINE)
        for code, text in zip(parts[::2], parts[1::2], strict=True):
            found[code] = CodeText(area=area, text=text.strip())
    return found


def tell_code(code: str, *, as_json: bool) -> int:
    """Print what *code* means and what to do; returns 0."""
    told = read_codes()[code]
    page = f"docs/errors/{told.area}.md#{code}"
    if as_json:
        write_json({"code": code, "meaning": CODES[code], "page": page, "text": told.text})
    else:
        write_lines([f"{code}: {CODES[code]}", "", *_wrapped(told.text), "", f"more of its kind: {page}"])
    return 0


def _wrapped(text: str) -> Iterator[str]:
    """The lines of a Markdown *text* for a terminal: paragraphs and items wrapped as one each, code indented."""
    # Code stands between odd and even fences; of the rest a line goes on with the one above, save after a blank and at an item.
    for number, block in enumerate(re.split(r"^```.*\n?", text, flags=re.MULTILINE)):
        if number % 2:
            yield from (f"{_CODE}{line}".rstrip() for line in block.splitlines())
            continue
        for line in re.sub(r"(?<!\n)\n(?!\n|- |\||$)", " ", block).splitlines():
            below = "  " if line.startswith("- ") else ""
            yield from textwrap.wrap(
                line, _COLUMNS, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
            ) or [""]


def _with_nearest_code(error: ProblemsError, name: str) -> ProblemsError:
    """*error*, whose hint names the code that *name* may be a slip of."""
    near = difflib.get_close_matches(name[:80], CODES, n=1, cutoff=0.8)
    if not near or "/" in name:
        return error
    also = f"or did you mean the code: dra-infra explain {near[0]}"
    return type(error)(
        [replace(each, hint=f"{each.hint}; {also}" if each.hint else also) for each in error.problems]
    )
