"""Before and after side by side: changes, dangers, placements, and the reports of them.

Pure: two runs of a program and two placements in, one `Review` out, and text in six forms from that. Compiling the
programs, placing pods, reading and writing files belong to others.
"""

from __future__ import annotations

from dra_infra.review.changes import Change
from dra_infra.review.dangers import Danger
from dra_infra.review.html_report import render_html
from dra_infra.review.machine_reports import render_json, render_junit, render_sarif
from dra_infra.review.markdown_report import render_markdown
from dra_infra.review.placements import WorkloadReview
from dra_infra.review.reviews import Review, review
from dra_infra.review.text_report import render_text

__all__ = [
    "Change",
    "Danger",
    "Review",
    "WorkloadReview",
    "render_html",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_sarif",
    "render_text",
    "review",
]
