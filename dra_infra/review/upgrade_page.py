"""An upgrade as one self-contained HTML page, of the building blocks of the page of a review."""

from __future__ import annotations

from dra_infra.review.html_report import page_environment
from dra_infra.upgrades.differences import Upgrade
from dra_infra.upgrades.reports import MARKS, describe_title


def render_upgrade_page(upgrade: Upgrade) -> str:
    """Return the page. Every text in it is escaped; nothing is loaded from anywhere, and no script runs."""
    template = page_environment().get_template("upgrade.html.j2")
    return template.render(upgrade=upgrade, title=describe_title(upgrade), marks=MARKS)
