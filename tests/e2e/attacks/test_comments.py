"""A stranger's names in the comment that a bot posts: none becomes a link, a picture or anything else on GitHub."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.support.rendered_markdown import REFERENCES, rendered
from tests.support.warm_commands import warm

pytestmark = pytest.mark.e2e

NAMES: Final = (
    "write-to billing@evil.example", "mailto:billing@evil.example", "xmpp:a@evil.example/room", "www.evil.example", "https://evil.example",
    "[x](https://evil.example)", "![x](https://evil.example)", "<a href=//evil.example>", "[^1]", "@octocat", "#1", "- [ ] x", "1. x", "$x$",
)  # fmt: skip
OURS: Final = {"h3", "p", "ul", "li", "strong", "em", "pre", "code", "details", "summary", "b", "br"} | {
    "h1", "table", "thead", "tbody", "tr", "th", "td", "sub"
}  # fmt: skip


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A change that adds a claim and a workload of each name; what it changes is empty."""
    items: list[dict[str, object]] = []
    for name in NAMES:
        requests = [{"name": name, "exactly": {"deviceClassName": name, "count": 0}}]
        metadata = {"name": name, "namespace": name, "labels": {name: name}}
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
        container = {"name": name, "image": name, "resources": {"limits": {"nvidia.com/gpu": 1}}}
        pod = {"containers": [container], "resourceClaims": [{"name": name, "resourceClaimName": name}]}
        items.append({**claim, "spec": {"devices": {"requests": requests}}})
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    for file, objects in (("head.yaml", items), ("base.yaml", [])):
        (tmp_path / file).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return tmp_path


def run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [warm().command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr
    return done.stdout


def judge(loot: Loot, markup: str) -> None:
    """Note what GitHub makes of names beside text."""
    page = rendered(markup)
    for name in ("billing@", "octocat"):
        assert name in f"{page.text} {page.code}".replace("\u200b", "")
    for element in sorted(page.elements - OURS):
        loot.add(f"<{element}> in a comment")
    found = REFERENCES.search(page.text)
    loot.add_if(found, f"a reference in a comment: {found and found[0]}")


@pytest.mark.parametrize("brief", [False, True])
def test_names_in_a_review(manifests: Path, loot: Loot, *, brief: bool):
    options = ("--base-path", "base.yaml", "--fleet", "hgx-h100", *(["--brief"] if brief else []))
    judge(loot, run("review", "head.yaml", *options, "--format", "markdown", folder=manifests))


def test_names_in_the_report_of_a_migration(manifests: Path, loot: Loot):
    judge(loot, run("migrate", "head.yaml", "--whole-gpus", "--format", "markdown", folder=manifests))
