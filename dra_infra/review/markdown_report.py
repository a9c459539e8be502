"""A review as Markdown for a comment of a forge: counts and danger first, one fold per object, within the limit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from dra_infra.errors import Problem
from dra_infra.output.escaping import markdown, markdown_code, one_line
from dra_infra.output.wording import count_of, shorten
from dra_infra.placement.texts import describe_all_at_once
from dra_infra.review.changes import Change
from dra_infra.review.dangers import Danger
from dra_infra.review.engine_steps import WORDS, EngineOnly, EngineSide
from dra_infra.review.folding import EqualWorkloads, fold_unchanged, group_equal, tell, tell_other_reasons
from dra_infra.review.growth import CostRow
from dra_infra.review.placements import RoomChange
from dra_infra.review.reviews import Review
from dra_infra.review.text_report import SIGNS
from dra_infra.upgrades.reports import describe_title, list_in_markdown

BUDGET: Final = 65_536
"""What GitHub takes in one comment. Counted in bytes here, which is never less than characters."""

_RESERVE: Final = 400
"""Kept free for the line that says what was cut."""

_DIFF_LINES: Final = (200, 30)
"""Most lines of one object's diff, and how many it gets when that is too much."""

_MAX_TEXT: Final = 600
"""Characters of one name or message."""

_MAX_NAME: Final = 100
"""Characters of a name in the first lines: they are never left out, so they have to stay short."""

_MAX_MARKER: Final = 200

_GRADE_SIGNS: Final = {"failed": "❌", "danger": "⚠️", "undecided": "❔", "ok": "✅"}
_TREND_SIGNS: Final = {
    "no-longer-fits": "❌",
    "does-not-fit": "❌",
    "not-decided": "❔",
    "fits-now": "✅",
    "new": "✅",
    "moved": "✅",
    "same": "✅",
    "gone": "🗑️",
}


def marker_of(project: str, stack: str) -> str:
    """The hidden line by which a later run finds the comment again."""
    return f"<!-- dra-infra review {_part_of_marker(project)}/{_part_of_marker(stack)} -->"


def _part_of_marker(name: str) -> str:
    shown = quote(name, safe="", errors="surrogatepass")
    if len(shown) <= _MAX_MARKER:
        return shown
    # Longer than any name that Pulumi takes; the hash keeps two of them apart.
    return f"{shown[:_MAX_MARKER]}~{hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def render_markdown(review: Review, *, brief: bool = False, budget: int = BUDGET) -> str:
    """The review in GitHub's Markdown, at most *budget* bytes.

    The brief form has no diffs, nothing of what fits as before, of what is left of the fleet, and of what is not known. What
    does not fit is left out whole, the least important first: diffs of created objects go before those of replaced ones, and
    those before placements, dangers and problems. The first lines always fit.
    """
    provenance = f"<sub>{review.provenance.describe(plain=markdown, code=markdown_code)}</sub>"
    page = _Page(budget - _RESERVE - len(provenance.encode()), last=provenance)
    page.add(f"{marker_of(review.project, review.stack)}\n{_headline(review)}")
    page.add_list("problems", [_problem(problem) for problem in review.mistakes])
    page.add_list("dangers", [_danger(danger) for danger in review.dangers], title="**Dangers**")
    if review.upgrade is not None:
        items = list(list_in_markdown(review.upgrade, with_notes=not brief))
        title = f"{describe_title(review.upgrade)}: {review.upgrade.headline}"
        page.add(f"**{markdown(title)}**")
        page.add_list("differences", items)
    _, unchanged = fold_unchanged(review)
    _add_placement(page, review, brief=brief)
    if brief:
        page.add_list("objects", [_title(change) for change in review.changes], title="**Changes**")
        return page.text()
    page.add_list("namespaces", [markdown(_short(line)) for line in tell(unchanged, " as before")])
    rooms = _Page(page.left // 8)
    rooms.add_table(
        "classes with room",
        "| Room for one more claim of | Base | Head | Where it lies |\n|---|--:|--:|---|",
        [_room(each) for each in review.rooms],
    )
    rooms.add_list(
        "lines on fragmentation",
        [markdown(_short(line)) for line in review.fragmented],
        title="**Free, and of no use to large claims**",
    )
    page.take(rooms)
    page.left -= rooms.used
    footer = _Page(page.left // 4)
    footer.add_list(
        "notes", list(_notes(review)), title="**Could not be known, or is not taken into account**"
    )
    engine = _Page((page.left - footer.used) // 4)
    if review.engine is not None and review.engine.failure is None:
        engine.add_list(
            "steps of the engine",
            list(_engine(review.engine)),
            title=f"**Engine:** {markdown(review.engine.counts)}",
        )
    page.take(engine)
    page.left -= footer.used + engine.used
    for change in review.changes:
        page.add_first("objects", _change_forms(change))
    page.take(footer)
    return page.text()


def _add_placement(page: _Page, review: Review, *, brief: bool) -> None:
    """Add where the workloads go that fail or are touched, all at once, and what node pools cost."""
    workloads, _ = fold_unchanged(review)
    page.add_list("rollouts", [_danger(each) for each in review.rollouts], title="**Rollouts**")
    page.add_table(
        "workloads",
        "| | Workload | Placement |\n|---|---|---|",
        [_workloads(group, brief=brief) for group in group_equal(workloads)],
    )
    if told := list(describe_all_at_once(review.joint, review.joint_at_most)):
        first, *rest = told
        title = f"**{markdown(_short(first))}**"
        if rest:
            page.add_list("orders", [markdown(_short(line.strip())) for line in rest], title=title)
        else:
            page.add(title)
    if review.growth is not None:
        page.add(f"**Node pools:** {markdown(_short(str(review.growth)))}")
        page.add_table(
            "rows of costs",
            f"| | Devices | {markdown(review.growth.unit)} | Change |\n|---|--:|--:|--:|",
            [_costs(row) for row in review.growth.shown],
        )


class _Page:
    """Blocks that are taken whole while there is room."""

    def __init__(self, budget: int, *, last: str = "") -> None:
        self.left = budget
        self.last = last
        self.used = 0
        self.blocks: list[str] = []
        self.cut: dict[str, int] = {}

    def add(self, block: str) -> bool:
        size = len(block.encode()) + 2
        if size > self.left:
            return False
        self.blocks.append(block)
        self.left -= size
        self.used += size
        return True

    def add_first(self, noun: str, forms: Iterator[str]) -> None:
        """Add the first form that fits, else count the thing as cut."""
        if not any(self.add(form) for form in forms):
            self.cut[noun] = self.cut.get(noun, 0) + 1

    def add_list(self, noun: str, items: list[str], *, title: str = "") -> None:
        self._add_rows(noun, title, [f"- {item}" for item in items], "\n\n" if title else "")

    def add_table(self, noun: str, head: str, rows: list[str]) -> None:
        self._add_rows(noun, head, rows, "\n")

    def _add_rows(self, noun: str, head: str, rows: list[str], joint: str) -> None:
        taken: list[str] = []
        size = len(head.encode()) + len(joint) + 2
        for row in rows:
            size += len(row.encode()) + 1
            if size > self.left:
                break
            taken.append(row)
        if taken:
            self.add(head + joint + "\n".join(taken))
        if len(taken) < len(rows):
            self.cut[noun] = self.cut.get(noun, 0) + len(rows) - len(taken)

    def take(self, other: _Page) -> None:
        self.blocks += other.blocks
        for noun, number in other.cut.items():
            self.cut[noun] = self.cut.get(noun, 0) + number

    def text(self) -> str:
        blocks = list(self.blocks)
        if self.cut:
            said = ", ".join(count_of(number, noun.removesuffix("s")) for noun, number in self.cut.items())
            blocks.append(
                f"_Cut to the size of a comment: {said} not shown. The HTML and JSON reports have all of it._"
            )
        return "\n\n".join([*blocks, self.last]) + "\n"


def _headline(review: Review) -> str:
    said = f"{review.findings} · {review.fit}" if review.fit else review.findings
    stack = f"{shorten(review.project, _MAX_NAME)}/{shorten(review.stack, _MAX_NAME)}"
    where = f"{_code(stack if review.stack else shorten(review.subject, _MAX_NAME))} against {_code(shorten(review.base_label, _MAX_NAME))}"
    kind = "" if review.source == "program" else f"{review.source} "
    title = f"### {_GRADE_SIGNS[review.grade]} {markdown(shorten(said, 2 * _MAX_NAME))}"
    return f"{title}\n\n{kind}{where}: **{markdown(review.summary)}**"


def _problem(problem: Problem) -> str:
    sign = "❌" if problem.severity == "error" else "⚠️"
    place = f" ({_code(str(problem.place))})" if problem.place else ""
    return (
        f"{sign} {_code(problem.path)}{place}: {markdown(_short(problem.message))} "
        f"{_code(problem.code)}{_hint(problem.hint)}"
    )


def _danger(danger: Danger) -> str:
    sign = "⚠️" if danger.level == "danger" else "✅"
    cause = f"{_code(danger.cause)} changes: " if danger.cause else ""
    place = f" ({_code(str(danger.place))})" if danger.place else ""
    return (
        f"{sign} {cause}{_code(str(danger.who))}{place} {markdown(_short(danger.message))} "
        f"{_code(danger.code)}{_hint(danger.hint)}"
    )


def _hint(hint: str) -> str:
    return f"<br>_hint:_ {markdown(_short(hint))}" if hint else ""


def _workloads(group: EqualWorkloads, *, brief: bool) -> str:
    workload = group.first
    said = markdown(_short(workload.summary))
    if workload.trend == "gone":
        said = f"gone, before: {said}"
    elif workload.trend == "new":
        said += "<br>_new_"
    elif workload.previous:
        said += f"<br>_before:_ {markdown(_short(workload.previous))}"
    if not workload.fits and workload.trend != "gone" and not brief:
        others = tell_other_reasons(workload.reasons)
        said += f"<br>_also:_ {markdown(_short(others))}" if others else ""
    names = ", ".join(_code(str(owner)) for owner in group.named)
    names += f" and {group.rest:,} more" if group.rest else ""
    return f"| {_TREND_SIGNS[workload.trend]} | {names} | {said} |"


def _room(room: RoomChange) -> str:
    return (
        f"| {_code(room.name)} | {room.before.claims:,} | {room.after.claims:,} | {markdown(room.spread)} |"
    )


def _costs(row: CostRow) -> str:
    name, *numbers = (markdown(_short(cell)) for cell in row.cells)
    return f"| {name} | {' | '.join(numbers)} |"


def _change_forms(change: Change) -> Iterator[str]:
    """From the whole diff down to one line."""
    title = _title(change)
    for most in _DIFF_LINES:
        yield f"<details><summary>{title}</summary>\n\n{_fence(change, most)}\n\n</details>"
    yield f"<details><summary>{title}</summary>\n\ndiff not shown\n\n</details>"


def _title(change: Change) -> str:
    title = f"<b>{SIGNS[change.action]} {change.action}</b> {_code(str(change.ref))}"
    if change.old_ref is not None:
        title += f", was {_code(change.old_ref.name)}"
    if change.component:
        title += f" · {_code(str(change.component))}"
    if change.replacing:
        order = "old one deleted first" if change.order == "delete-first" else "old one goes last"
        title += f" · {_code(', '.join(change.replacing))}, {order}"
    if change.steps:
        title += f" · engine: {_code(', '.join(change.steps))}"
    return title


def _fence(change: Change, most: int) -> str:
    lines: list[str] = []
    for hunk in change.diff:
        if change.before and change.after:
            lines.append(f"@@ {one_line(hunk.path)} @@")
        lines += [one_line(line) for line in hunk.lines]
    if len(lines) > most:
        lines = [*lines[:most], f"# … {count_of(len(lines) - most, 'more line')}"]
    # A fence is closed by as many backticks as opened it: one more than any line has cannot be closed from inside.
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}diff", *lines, fence])


def _engine(side: EngineSide) -> Iterator[str]:
    yield from (_engine_only(each) for each in side.others)
    yield from (f"⚠️ {markdown(_short(' '.join(each.text.split())))}" for each in side.warnings)
    if not side.others and not side.warnings:
        yield "nothing beside the changes below"


def _engine_only(each: EngineOnly) -> str:
    told = ", ".join(each.replacing or [path for path, _ in each.paths])
    where = f" · {_code(told)}" if told else ""
    return f"{_code(', '.join(each.steps))} {_code(each.title)}{where} · {WORDS[each.why]}"


def _notes(review: Review) -> Iterator[str]:
    for item in review.not_known:
        yield f"{markdown(item.what)} {_code(item.name)}: {markdown(_short(item.reason))}"
    yield from (markdown(_short(note)) for note in review.notes)


def _code(text: str) -> str:
    return markdown_code(_short(text))


def _short(text: str) -> str:
    return shorten(text, _MAX_TEXT)
