"""Comments of lines that a migration changes: each stays, stands above what replaces its line, or is counted."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.documents.yaml import read_manifests
from dra_infra.documents.yaml_patch import find_comments
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.sources.files import SourceObject, read_sources
from dra_infra.sources.rewriting import Replacement, Rewritten, rewrite
from tests.support.migration.device_plugin_cases import Case, cases
from tests.support.migration.old_dra_cases import cases as old_cases

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: r/x:1
        resources:
          # sizing agreed in TICKET-12, do not lower
          limits:
            # two because of TP=2
            nvidia.com/gpu: 2   # see runbook 7
            # memory is set by VPA
          # requests follow
      # the node pool
      nodeSelector:
        # only A100
        nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB # 80 GB
"""


def commented(objects: Sequence[Any]) -> str:
    """The objects as YAML in which every second line has a comment of its own above, and every third one behind."""
    lines: list[str] = []
    in_text = -1
    for number, line in enumerate(yaml.safe_dump_all(objects, sort_keys=False, width=1000).splitlines()):
        indent = len(line) - len(line.lstrip())
        in_text = in_text if indent > in_text >= 0 else -1
        is_plain = in_text < 0 and line.strip() and not line.startswith(("---", "..."))
        if is_plain and number % 2:
            lines.append(f"{' ' * indent}# above {number}")
        has_end = is_plain and number % 3 == 0 and not re.search(r"[|>][-+]?$", line)
        lines.append(f"{line}  # behind {number}" if has_end else line)
        if in_text < 0 and re.search(r"[|>][-+]?$", line):
            in_text = indent
    return "\n".join(lines) + "\n"


def rewritten(folder: Path, text: str, settings: Settings) -> Rewritten:
    file = folder / "in.yaml"
    file.write_text(text)
    sources = [each for each in read_sources([str(file)], io.BytesIO()) if isinstance(each, SourceObject)]
    done = migrate_objects([each.manifest for each in sources], settings)
    return rewrite(
        text,
        [Replacement(source, each.manifest, each.added) for source, each in zip(sources, done, strict=True)],
    )


def check(folder: Path, objects: Sequence[Any], settings: Settings) -> None:
    text = commented(objects)
    assert list(yaml.safe_load_all(text)) == list(objects)
    result = rewritten(folder, text, settings)
    left = Counter(find_comments(text))
    left.subtract(find_comments(result.text))
    assert all(count >= 0 for count in left.values()), "no comment is written twice"
    anew = {line for line, _ in result.anew}
    if not anew:
        assert sum(left.values()) == sum(number for _, number in result.dropped)
    kept = [each for each in read_manifests(result.text) if each]
    now = [
        each
        for one in migrate_objects(list(objects), settings)
        for each in (one.manifest, *one.added)
        if each
    ]
    assert kept == now


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_comments_of_requests_to_plugins_are_kept_or_counted(case: Case, tmp_path: Path):
    check(tmp_path, case.input, case.settings)


@pytest.mark.parametrize("case", old_cases(), ids=lambda case: case.id)
def test_comments_of_old_dra_are_kept_or_counted(case: Any, tmp_path: Path):
    check(tmp_path, case.input, Settings())


def test_comments_of_lines_that_go_stand_above_the_template(tmp_path: Path):
    case = next(each for each in cases() if each.id == "whole-gpu")
    result = rewritten(tmp_path, WEB, case.settings)
    pod, template = result.text.split("---\n")
    moved = ["sizing agreed in TICKET-12, do not lower", "two because of TP=2", "see runbook 7"]
    moved += ["the node pool", "only A100", "80 GB"]
    assert template.startswith("".join(f"# {each}\n" for each in moved) + "apiVersion: resource.k8s.io/v1\n")
    stay = "          - name: gpu\n            # memory is set by VPA\n          # requests follow\n      resourceClaims:\n"
    assert stay in pod
    assert result.dropped == ()


def test_comments_of_an_object_that_goes_are_counted(tmp_path: Path):
    text = (
        "apiVersion: gpu.resource.nvidia.com/v1alpha1\nkind: GpuClaimParameters\nmetadata: {name: p, namespace: d}\n"
        "spec:\n  count: 1\n  # sharing:\n  #   strategy: MPS\n  selector: {uuid: GPU-1}  # this one\n---\n# the template\n"
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaimTemplate\nmetadata: {name: t, namespace: d}\nspec:\n"
        "  spec:\n    resourceClassName: gpu.nvidia.com\n"
        "    parametersRef: {apiGroup: gpu.resource.nvidia.com, kind: GpuClaimParameters, name: p}\n"
    )
    result = rewritten(tmp_path, text, Settings())
    assert result.dropped == ((0, 3),)
    assert "# the template\n" in result.text
