"""A review as one self-contained HTML page: no script, no network, light and dark."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dra_infra.planning.fleet_map import COLORS, draw_fleet
from dra_infra.planning.reviews import MARKS, Review
from dra_infra.planning.text_report import SIGNS
from dra_infra.planning.wording import count_of, show_hidden

MAX_DIFF_LINES: Final = 2_000
"""Lines of one object's diff on the page."""


def render_html(review: Review) -> str:
    """The review as one page. Every text in it is escaped; nothing is loaded from anywhere."""
    owners = [workload.owner for workload in review.workloads]
    return (
        _environment()
        .get_template("review.html.j2")
        .render(
            review=review,
            fleet_map=draw_fleet(review.before, review.after, owners) if review.after else None,
            letters={owner: position for position, owner in enumerate(owners)},
            marks=MARKS,
            signs=SIGNS,
            colors=COLORS,
            max_diff_lines=MAX_DIFF_LINES,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dra_infra.planning"),
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
    return value if isinstance(value, (Markup, int, float)) else show_hidden(str(value))
