"""A review as one self-contained HTML page: no network, light and dark, readable without scripts.

Of the diffs of a page the first ones are text in it, the rest is data that is drawn when a reader opens one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dra_infra.codes import CODES
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.output.escaping import one_line
from dra_infra.output.wording import count_of, shorten
from dra_infra.placement.texts import JOINT_MARKS, describe_all_at_once, describe_joint
from dra_infra.review.changes import Change
from dra_infra.review.diff import Hunk
from dra_infra.review.engine_steps import WORDS
from dra_infra.review.fleet_colors import OTHER, letter_of
from dra_infra.review.fleet_map import draw_fleet
from dra_infra.review.folding import Folded, fold_unchanged, group_equal
from dra_infra.review.object_graph import trace_chains
from dra_infra.review.placements import WorkloadReview
from dra_infra.review.reviews import MARKS, Review
from dra_infra.review.text_report import SIGNS

MAX_LINES: Final = 2_000
"""Lines of one object's diff on the page."""

INLINE_LINES: Final = 3_000
"""Lines that are in the page as text: enough for nearly every pull request, also where scripts do not run."""

DATA_CHARACTERS: Final = 5_000_000
"""What all diffs that are drawn later may take; those after it are left to the JSON report."""

_SCRIPT_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
# In JSON these only stand in strings, where an escape means the same. Without them nothing ends the script element.


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line on the page.

    Args:
        style: `add`, `del`, `at` for a path or a remark, empty for what stays.
        text: With hidden characters spelled out.
    """

    style: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddedDiffs:
    """The diffs of all changes.

    Args:
        inline: Lines by position of the change.
        left_out: Positions of changes whose diff is not on the page.
        data: The rest, as JSON that may stand in a script element: `lines` holds each text once with its style,
            `diffs` the numbers of lines by position of the change.
    """

    inline: Mapping[int, tuple[Line, ...]]
    left_out: frozenset[int]
    data: str


def embed_diffs(changes: Iterable[Change]) -> EmbeddedDiffs:
    """Share out the room of one page; what comes first in the review is served first."""
    inline: dict[int, tuple[Line, ...]] = {}
    left_out: set[int] = set()
    numbers: dict[tuple[str, str], int] = {}
    later: dict[int, list[int]] = {}
    inline_left = INLINE_LINES
    data_left = DATA_CHARACTERS
    for position, change in enumerate(changes):
        lines = tuple(_lines(change))
        if len(lines) <= inline_left:
            inline[position] = lines
            inline_left -= len(lines)
            continue
        keys = [(line.style, line.text) for line in lines]
        size = sum(8 if key in numbers else len(key[1]) + 20 for key in keys)
        if size > data_left:
            left_out.add(position)
            continue
        data_left -= size
        later[position] = [numbers.setdefault(key, len(numbers)) for key in keys]
    data = {"lines": list(numbers), "diffs": later} if later else {}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return EmbeddedDiffs(inline=inline, left_out=frozenset(left_out), data=text.translate(_SCRIPT_ESCAPES))


def _lines(change: Change) -> Iterator[Line]:
    left = MAX_LINES
    for hunk in change.diff:
        if left > 0:
            yield from _hunk(hunk, left, with_path=change.action in ("changed", "replaced"))
        left -= len(hunk.lines)
    if left < 0:
        yield Line(style="at", text=f"… {count_of(-left, 'more line')}")


def _hunk(hunk: Hunk, most: int, *, with_path: bool) -> Iterator[Line]:
    if with_path:
        yield Line(style="at", text=f"@@ {one_line(hunk.path)}")
    for line in hunk.lines[:most]:
        style = {"+": "add", "-": "del"}.get(line[:1], "")
        yield Line(style=style, text=one_line(line))


MAX_FINDINGS: Final = 50
"""Problems, and dangers, that show at once; the rest is folded."""

MAX_WORKLOADS: Final = 100
"""Workloads that show at once; the rest is folded, for a browser lays a table out as a whole."""

MAX_FOLDED: Final = 450
"""Problems, dangers and workloads that are folded; nobody reads on after hundreds, and the JSON report has all."""

MAX_UNCHANGED: Final = 1_500
"""Workloads that fit as before of which the page says where they go; the JSON report has all."""

MAX_NODE_ROWS: Final = 300
"""Kinds of nodes in the table that says what the map shows."""

MAX_TEXT: Final = 2_000
"""Characters of one name or message; nobody reads a megabyte, and the JSON report has it."""


def render_html(review: Review) -> str:
    """The review as one page. Every text in it is escaped; nothing is loaded from anywhere.

    The only script that runs is the page's own: the security policy of the page names its hash.
    """
    owners = tuple(workload.owner for workload in review.workloads)
    teams = {workload.owner: workload.team for workload in review.workloads}
    fleet_map = draw_fleet(review.before, review.after, owners, teams) if review.after else None
    shown, folded = fold_unchanged(review)
    diffs = embed_diffs(review.changes)
    positions = _positions(review)
    script = page_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        page_environment()
        .get_template("review.html.j2")
        .render(
            review=review,
            rooms=review.rooms,
            workloads=group_equal(shown),
            unchanged=tuple(_list_unchanged(review, folded)),
            joint=list(describe_joint(review.joint)) if review.joint else [],
            at_most=[*describe_all_at_once(None, review.joint_at_most)],
            colors_by_name=dict(zip(map(str, owners), fleet_map.colors.of, strict=True)) if fleet_map else {},
            fleet_map=fleet_map,
            rows=[
                (group.model, each)
                for group in (fleet_map.groups if fleet_map else ())
                for each in group.tiles or group.strips
            ],
            letter_of=letter_of,
            letters={owner: position for position, owner in enumerate(owners)},
            positions=positions,
            trace_chains=lambda workload: trace_chains(workload.after, positions) if workload.after else (),
            meanings=_find_meanings(review),
            diffs=diffs,
            data=Markup(diffs.data),  # noqa: S704  (JSON in which nothing can end the element)
            script=Markup(script),  # noqa: S704  (our own file)
            digest=digest,
            marks=MARKS,
            joint_marks=JOINT_MARKS,
            signs=SIGNS,
            other=OTHER,
            engine_words=WORDS,
            max_findings=MAX_FINDINGS,
            max_folded=MAX_FOLDED,
            max_workloads=MAX_WORKLOADS,
            max_node_rows=MAX_NODE_ROWS,
        )
    )


def _find_meanings(review: Review) -> Mapping[str, str]:
    """Return what each code of the page means, in the order of the alphabet; codes of other tools have no meaning here."""
    codes = {problem.code for problem in review.mistakes}
    codes |= {danger.code for danger in (*review.dangers, *review.rollouts)}
    return {code: CODES[code] for code in sorted(codes) if code in CODES}


def _list_unchanged(
    review: Review, folded: Iterable[Folded]
) -> Iterator[tuple[Folded, list[WorkloadReview]]]:
    """The namespaces, with the workloads of each as far as the page has room for."""
    workloads = {workload.owner: workload for workload in review.workloads}
    left = MAX_UNCHANGED
    for each in folded:
        yield each, [workloads[owner] for owner in each.owners[:left]]
        left = max(0, left - len(each.owners))


def _positions(review: Review) -> Mapping[str | ObjectRef, int]:
    """Where an object is among the changes, by itself and by what a problem calls it."""
    positions: dict[str | ObjectRef, int] = {}
    for position, change in enumerate(review.changes):
        positions[change.ref] = position
        positions[str(change.ref)] = position
    return positions


@cache
def page_script() -> str:
    """Return the script of pages."""
    return (files("dra_infra.review") / "templates/review.js").read_text(encoding="utf-8")


@cache
def page_environment() -> Environment:
    """Return the templates of pages, which escape every text and spell hidden characters out."""
    environment = Environment(
        loader=PackageLoader("dra_infra.review"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_show,
    )
    environment.filters["count_of"] = count_of
    environment.filters["trim_verdict"] = _trim_verdict
    return environment


def _trim_verdict(summary: str) -> str:
    # The badge beside it says so already.
    return summary.removeprefix("does not fit: ").removeprefix("not decided: ")


def _show(value: Any) -> Any:
    # Whatever a template prints is a name or a message of somebody: no hidden character gets onto the page.
    return value if isinstance(value, (Markup, int, float)) else one_line(shorten(str(value), MAX_TEXT))
