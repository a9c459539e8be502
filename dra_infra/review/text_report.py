"""A review for the terminal: the verdict, dangers, changes, placement, and near the end what has to be fixed.

What fits as before is one line per namespace. The brief form has only the verdict, dangers, what changes, and problems.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from dra_infra.errors import Problem
from dra_infra.output.escaping import block, one_line
from dra_infra.output.wording import count_of, shorten
from dra_infra.placement.texts import describe_all_at_once
from dra_infra.review.changes import Action, Change
from dra_infra.review.dangers import Danger
from dra_infra.review.engine_steps import WORDS, EngineSide
from dra_infra.review.folding import EqualWorkloads, fold_unchanged, group_equal, tell, tell_other_reasons
from dra_infra.review.growth import GrowthChange
from dra_infra.review.placements import RoomChange, Trend
from dra_infra.review.reviews import Grade, Review
from dra_infra.upgrades.reports import describe_differences, describe_title

SIGNS: Final[dict[Action, str]] = {
    "created": "+",
    "changed": "~",
    "replaced": "±",
    "deleted": "-",
    "retained": "○",
}
"""What each action is marked with in text."""

MAX_DIFF_LINES: Final = 60
"""Lines of one object's diff that a terminal gets; the other forms of the report have more."""

MAX_TEXT: Final = 2_000
"""Characters of one name or message that a terminal gets."""

MAX_WORKLOADS: Final = 60
"""Workloads that changed and do not fail that a terminal gets; the JSON report has all."""

MAX_ROOMS: Final = 40
"""Classes and profiles whose room a terminal gets; the JSON report has all."""

MAX_OTHERS: Final = 40
"""Steps of the engine beside our changes that a terminal gets; the JSON report has all."""

_GRADE_STYLES: Final[dict[Grade, str]] = {
    "failed": "bold red",
    "danger": "bold yellow",
    "undecided": "bold yellow",
    "ok": "bold green",
}
_ACTION_STYLES: Final[dict[Action, str]] = {
    "created": "green",
    "changed": "yellow",
    "replaced": "magenta",
    "deleted": "red",
    "retained": "yellow",
}
_TREND_STYLES: Final[dict[Trend, str]] = {
    "no-longer-fits": "red",
    "does-not-fit": "red",
    "not-decided": "yellow",
}
_LINE_STYLES: Final = {"+": "green", "-": "red"}


def render_text(review: Review, *, brief: bool = False, color: bool = False, width: int = 120) -> str:
    """The review in lines. Only placements are wrapped at *width*: what people search for stays on one line.

    Args:
        review: What to show.
        brief: Whether to leave out diffs, what fits as before, what is left of the fleet, and what is not known.
        color: Whether to write terminal colours. The caller knows whether it writes to a terminal.
        width: Columns of the terminal.
    """
    out = io.StringIO()
    # Nothing is read from the environment: the same review gives the same bytes.
    console = Console(
        file=out,
        width=max(width, 40),
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
        _environ={},
    )
    for each in _blocks(review, brief=brief):
        if color or isinstance(each, Table):
            console.print(each, soft_wrap=not isinstance(each, Table))
        else:
            # The console would write the same, and takes a tenth of a millisecond for a line.
            out.write(f"{each}\n")
    text = out.getvalue()
    return text if color else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _blocks(review: Review, *, brief: bool) -> Iterator[RenderableType]:
    yield _text(review.verdict, _GRADE_STYLES[review.grade])
    kind = "" if review.source == "program" else f"{review.source} "
    yield _text(f"  {kind}{review.subject} against {review.base_label}: {review.summary}", "dim")
    told = (*review.dangers, *review.rollouts)
    if told:
        yield ""
    for danger in told:
        yield from _danger(danger)
    if review.upgrade is not None:
        yield ""
        yield _text(f"{describe_title(review.upgrade)}: {review.upgrade.headline}", "bold")
        yield from (_text(line, "") for line in describe_differences(review.upgrade, with_notes=not brief))
    yield from _changes(review, brief=brief)
    yield from _places(review, brief=brief)
    # A terminal shows the end first: what has to be fixed stands there.
    if review.problems:
        yield ""
    for problem in review.mistakes:
        yield from _problem(problem)
    if not brief and (review.not_known or review.notes):
        yield ""
        yield _text("could not be known, or is not taken into account:", "bold")
        for item in (*map(str, review.not_known), *review.notes):
            yield _hanging(item)
    yield ""
    yield _text(review.provenance.describe(), "dim")


def _changes(review: Review, *, brief: bool) -> Iterator[RenderableType]:
    if brief:
        yield from [""] if review.changes else []
        yield from map(_title, review.changes)
        return
    for change in review.changes:
        yield ""
        yield _title(change)
        yield from _diff(change)
    if review.engine is not None and review.engine.failure is None:
        yield ""
        yield from _engine(review.engine)


def _places(review: Review, *, brief: bool) -> Iterator[RenderableType]:
    workloads, unchanged = fold_unchanged(review)
    if workloads:
        yield ""
        groups = group_equal(workloads)
        shown = _choose(groups)
        yield _placements(shown, brief=brief)
        if left := sum(len(group.workloads) for group in groups[len(shown) :]):
            yield _hanging(f"… {count_of(left, 'more workload')} that changed; the JSON report has them")
    if unchanged and not brief:
        yield ""
        yield from map(_hanging, tell(unchanged, " as before"))
    if told := list(describe_all_at_once(review.joint, review.joint_at_most)):
        yield ""
        yield _all_at_once(told)
    if review.rooms and not brief:
        yield ""
        yield _rooms(review.rooms)
    if review.growth:
        yield ""
        yield _text(f"node pools: {review.growth}", "bold")
        yield _costs(review.growth)


def _costs(growth: GrowthChange) -> Table:
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    table.add_column("")
    for head in ("devices", growth.unit, "change"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in growth.shown:
        table.add_row(*(_text(cell, "") for cell in row.cells))
    if growth.left_out:
        table.add_row(_text(f"… {count_of(growth.left_out, 'more row')}", "dim"))
    return table


def _choose(groups: Sequence[EqualWorkloads]) -> Sequence[EqualWorkloads]:
    """Return the rows of all workloads that fail, and of as many others as a terminal gets."""
    failing = sum(group.first.trend in _TREND_STYLES for group in groups)
    return groups[: failing + MAX_WORKLOADS]


def _placements(groups: Sequence[EqualWorkloads], *, brief: bool) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=False, ratio=None, max_width=40, overflow="fold")
    table.add_column(overflow="fold")
    for group in groups:
        workload = group.first
        names = [f"  {owner}" for owner in group.named]
        names += [f"  and {group.rest:,} more"] if group.rest else []
        name = Text("\n").join(_text(line, "bold") for line in names)
        now = f"gone, before: {workload.summary}" if workload.trend == "gone" else workload.summary
        table.add_row(name, _text(now, _TREND_STYLES.get(workload.trend, "")))
        if workload.trend == "new":
            table.add_row("", _text("new", "dim"))
        elif workload.previous:
            table.add_row("", _text(f"before: {workload.previous}", "dim"))
        if workload.trend in _TREND_STYLES and not brief and (others := tell_other_reasons(workload.reasons)):
            table.add_row("", _text(f"also: {others}", "dim"))
    return table


def _all_at_once(lines: Sequence[str]) -> Table:
    """The verdicts, wrapped: the mark of each has a column of its own."""
    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        mark, text = ("    ", line.strip()) if line.startswith(" ") else (f"  {line[:2]}", line[2:])
        table.add_row(_text(mark, ""), _text(text, ""))
    return table


def _rooms(rooms: Sequence[RoomChange]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    table.add_column("room for one more claim of", no_wrap=True)
    table.add_column("base", justify="right", no_wrap=True)
    table.add_column("head", justify="right", no_wrap=True)
    table.add_column("where it lies")
    for each in rooms[:MAX_ROOMS]:
        style = "yellow" if each.after.claims < each.before.claims else ""
        cells = (each.name, f"{each.before.claims:,}", f"{each.after.claims:,}", each.spread)
        table.add_row(*(_text(one_line(shorten(cell, MAX_TEXT)), style) for cell in cells))
    return table


def _problem(problem: Problem) -> Iterator[RenderableType]:
    label, style = ("problem", "bold red") if problem.severity == "error" else ("warning", "bold yellow")
    where = f"{problem.place}: " if problem.place else ""
    yield _labelled(label, style, f"{where}{problem.path}: {problem.message}", problem.code)
    if problem.hint:
        yield _hanging(f"hint: {problem.hint}")


def _danger(danger: Danger) -> Iterator[RenderableType]:
    style = "bold yellow" if danger.level == "danger" else "bold"
    yield _labelled(danger.level, style, str(danger), danger.code)
    if danger.hint:
        yield _hanging(f"hint: {danger.hint}")


def _title(change: Change) -> Text:
    style = _ACTION_STYLES[change.action]
    head = Text(f"{SIGNS[change.action]} {change.action} ", style=f"bold {style}")
    head.append(_show(str(change.ref)), style="bold")
    if change.old_ref is not None:
        head.append(_show(f", was {change.old_ref.name}"))
    if change.component:
        head.append(_show(f"  {change.component}"), style="dim")
    head.append(one_line(_how(change)), style="dim")
    return head


def _diff(change: Change) -> Iterator[RenderableType]:
    left = MAX_DIFF_LINES
    for hunk in change.diff:
        if left <= 0:
            break
        if change.before and change.after:
            yield _text(f"    @@ {hunk.path} @@", "cyan")
        for line in hunk.lines[:left]:
            yield _text(f"    {line}", _LINE_STYLES.get(line[:1], ""))
        left -= len(hunk.lines)
    total = sum(len(hunk.lines) for hunk in change.diff)
    if total > MAX_DIFF_LINES:
        yield _text(f"    … {count_of(total - MAX_DIFF_LINES, 'more line')}", "dim")


def _how(change: Change) -> str:
    """How a replacement goes, and what the engine would do."""
    told = ""
    if change.replacing:
        order = "the old one is deleted first" if change.order == "delete-first" else "the old one goes last"
        told = f"  {', '.join(change.replacing)}; {order}"
    return f"{told}  engine: {', '.join(change.steps)}" if change.steps else told


def _engine(side: EngineSide) -> Iterator[RenderableType]:
    yield _text(f"engine: {side.counts}", "bold")
    for other in side.others[:MAX_OTHERS]:
        told = ", ".join(other.replacing or [path for path, _ in other.paths])
        where = f": {told}" if told else ""
        yield _hanging(f"{', '.join(other.steps)} {other.title}{where} ({WORDS[other.why]})")
    if len(side.others) > MAX_OTHERS:
        yield _hanging(f"… {count_of(len(side.others) - MAX_OTHERS, 'more resource')}")
    for warning in side.warnings[:MAX_OTHERS]:
        yield _hanging(f"warning: {' '.join(warning.text.split())}")


def _labelled(label: str, style: str, message: str, code: str) -> Text:
    text = Text(f"{label}: ", style=style)
    text.append(_lines(message), style="not bold default")
    text.append(f" [{code}]", style="not bold dim")
    return text


def _hanging(message: str) -> Text:
    return Text(_lines(f"  {message}"))


def _text(message: str, style: str) -> Text:
    return Text(_show(message), style=style)


def _lines(text: str) -> str:
    # Every line but the first is indented further than ours are, so that none passes for one.
    return block(shorten(text, MAX_TEXT)).replace("\n", "\n    ")


def _show(text: str) -> str:
    return one_line(shorten(text, MAX_TEXT))
