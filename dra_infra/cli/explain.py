"""The `dra-infra explain` command: says why a pod or claim gets no devices, and what the code of a problem means.

The texts of codes are those of docs/errors, which a contract test writes into `codes.md` of the package.
"""

from __future__ import annotations

import difflib
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final, Unpack

import click

from dra_infra.answers.asking import ask_cluster, ask_files, find_own_project
from dra_infra.answers.explaining import SubjectFacts, answer
from dra_infra.answers.reading import SceneOptions
from dra_infra.cli.explain_report import describe, in_python, to_json
from dra_infra.cli.printing import print_not_seen, print_problems, progress, say, write_json, write_lines
from dra_infra.cli.reports import inputs_of, inputs_of_scene, plan_reports, text_of, write_reports
from dra_infra.codes import CODES
from dra_infra.errors import ProblemsError, ProgramError
from dra_infra.output.escaping import json_text
from dra_infra.output.report_data import make_report

_COLUMNS: Final = 100
_CODE: Final = "    "
"""Indentation of code in a text."""


def run(
    name: str,
    path: Path | None,
    *,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    request_timeout: float,
    timeout: float,
    is_deep: bool,
    form: str,
    files: Sequence[Path] = (),
    **options: Unpack[SceneOptions],
) -> int:
    """Print why a pod or claim fits or not. Return 0 when it fits, and 1 when it does not, or nobody knows in the time.

    What fits when node pools grow within their limits counts as fitting.
    A name alone that is a code is the code, whose meaning is printed.

    Raises:
        ProblemsError: When there is nothing to answer.
        click.BadParameter: When options do not go together.
    """
    own = None
    if not (path or options.get("fleet") or options.get("snapshot") or kubeconfig or context):
        own = None if name in CODES else find_own_project(options.get("stack"), options.get("config", {}))
    path = path or own
    are_files = bool(path or options.get("fleet") or options.get("snapshot"))
    if name in CODES and not (are_files or kubeconfig or context or namespace):
        return tell_code(name, form=form, files=files)
    if are_files and (kubeconfig or context):
        raise click.BadParameter("files are read or a cluster, not both", param_hint="--kubeconfig")
    if path is None and not options.get("fleet"):
        _refuse_options_of_programs(options)
    inputs = [*inputs_of(path, kubeconfig), *inputs_of_scene(options)]
    reports = plan_reports(files, ("json", "text"), inputs)
    with progress() as tell:
        if are_files:
            try:
                facts = ask_files(name, path, namespace=namespace, timeout=timeout, **options)
            except ProgramError as error:
                raise _with_way_to_cluster(error) if own else error from None
            print_problems(facts.warnings)
            print_not_seen(facts.left_out)
        else:
            ask = partial(
                ask_cluster, kubeconfig=kubeconfig, context=context, request_timeout=request_timeout
            )
            facts = _ask_live(ask, name, namespace, options, tell)
        tell("explaining")
        end = time.monotonic() + timeout
        explained = answer(facts, is_late=lambda: time.monotonic() > end, is_deep=is_deep)
    for note in facts.notes:
        say(note)
    report = replace(explained, answer=explained.answer and in_python(explained.answer, facts.made))
    # What is wrong around the pods is in the report.
    print_problems([each for each in facts.not_seen if each not in report.causes], with_count=False)
    data, lines = to_json(report, facts.not_seen), list(describe(report))
    write_reports(reports, lambda each: json_text(data) if each == "json" else text_of(lines), inputs)
    if form == "json":
        write_json(data)
    else:
        write_lines(lines)
    return report.exit_code


def _ask_live(
    ask: Callable[..., SubjectFacts],
    name: str,
    namespace: str | None,
    options: SceneOptions,
    tell: Callable[[str], None],
) -> SubjectFacts:
    """Ask a live cluster about an object; for a name that is none, also name the code that may be meant."""
    kubernetes, gates = options.get("kubernetes"), options.get("gates", {})
    try:
        return ask(name, namespace=namespace, kubernetes=kubernetes, gates=gates, tell=tell)
    except ProblemsError as error:
        raise _with_nearest_code(error, name) from None


def _refuse_options_of_programs(options: SceneOptions) -> None:
    """Refuse options that would have no effect on what runs in a cluster or a snapshot."""
    given = {
        "prices": options.get("prices"),
        "driver": options.get("driver"),
        "provider": options.get("provider"),
    }
    for option, value in given.items():
        if value is not None:
            raise click.BadParameter(
                "needs a program or manifests: name their folder", param_hint=f"--{option}"
            )


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


def tell_code(code: str, *, form: str, files: Sequence[Path] = ()) -> int:
    """Print what *code* means and what to do; returns 0."""
    meaning = read_codes()[code]
    page = f"docs/errors/{meaning.area}.md#{code}"
    data = make_report("code", {"code": code, "meaning": CODES[code], "page": page, "text": meaning.text})
    lines = [f"{code}: {CODES[code]}", "", *_wrapped(meaning.text), "", f"more of its kind: {page}"]
    reports = plan_reports(files, ("json", "text"), ())
    write_reports(reports, lambda each: json_text(data) if each == "json" else text_of(lines))
    if form == "json":
        write_json(data)
    else:
        write_lines(lines)
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


def _with_way_to_cluster(error: ProgramError) -> ProgramError:
    """Return the error with the way to the cluster, for the project of the current folder was not named."""
    way = "this folder is a project, which is asked; for an object of the cluster add --context NAME"
    return ProgramError(
        [
            replace(each, hint=f"{each.hint}; {way}" if each.hint else way)
            if each.code == "subject-not-known"
            else each
            for each in error.problems
        ]
    )


def _with_nearest_code(error: ProblemsError, name: str) -> ProblemsError:
    """*error*, whose hint names the code that *name* may be a slip of."""
    near = difflib.get_close_matches(name[:80], CODES, n=1, cutoff=0.8)
    if not near or "/" in name:
        return error
    also = f"or did you mean the code: dra-infra explain {near[0]}"
    return type(error)(
        [replace(each, hint=f"{each.hint}; {also}" if each.hint else also) for each in error.problems]
    )
