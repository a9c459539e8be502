"""Keys that stand twice in a mapping: a migration takes the last one, as kubectl does, and says so."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from dra_infra.answers.migrating import migrate
from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import Problem
from dra_infra.sources.files import SourceObject, read_sources

CODE = "yaml-duplicate-key"


def a_pod(*, first: str = "", limits: str = "{nvidia.com/gpu: 4}", last: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n{first}  containers:\n  - name: c\n    image: i\n"
        f"    resources:\n      limits: {limits}\n{last}"
    )


CASES: dict[str, tuple[str, int, int]] = {
    "the same value twice": (a_pod(first="  restartPolicy: Never\n", last="  restartPolicy: Never\n"), 1, 4),
    "another value": (a_pod(first="  restartPolicy: Never\n", last="  restartPolicy: Always\n"), 1, 4),
    "limits": (a_pod(last="      limits: {nvidia.com/gpu: 2}\n"), 1, 2),
    "the resource": (a_pod(limits="{nvidia.com/gpu: 4, nvidia.com/gpu: 1}"), 1, 1),
    "three times": (
        a_pod(last="      limits: {nvidia.com/gpu: 2}\n      limits: {nvidia.com/gpu: 3}\n"),
        2,
        3,
    ),
    "containers": (
        a_pod(last="  containers: [{name: d, image: j, resources: {limits: {nvidia.com/gpu: 8}}}]\n"),
        1,
        8,
    ),
    "metadata": (a_pod(last="metadata: {name: b}\n"), 1, 4),
    "two mappings": (
        a_pod(
            first="  restartPolicy: Never\n",
            limits="{nvidia.com/gpu: 4, nvidia.com/gpu: 1}",
            last="  restartPolicy: Never\n",
        ),
        2,
        1,
    ),
    "behind another document": (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\n---\n{a_pod(last='metadata: {name: b}' + chr(10))}",
        1,
        4,
    ),
    "in a list": (
        (
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, name: b}\n"
            "  spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 4}}}]}\n"
        ),
        1,
        4,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_one_counts_with_a_warning_for_each(name: str, tmp_path: Path):
    text, warnings, number = CASES[name]
    file = tmp_path / "in.yaml"
    file.write_text(text)
    done = migrate([str(file)], whole_gpus=True, kubernetes="1.37")
    assert [(each.code, each.severity) for each in done.report.problems] == [(CODE, "warning")] * warnings
    assert all(each.place and each.place.line for each in done.report.problems)
    assert done.exit_code() == 0
    (changed,) = done.files
    # What was written has no key twice that would bring another value back.
    file.write_text(changed.after)
    again = migrate([str(file)], whole_gpus=True, kubernetes="1.37")
    assert again.report.changed == 0
    objects = [
        each
        for each in read_sources([str(file)], io.BytesIO(), keeps_last=True)
        if isinstance(each, SourceObject)
    ]
    (template,) = [each.manifest for each in objects if each.manifest["kind"] == "ResourceClaimTemplate"]
    request: dict[str, Any] = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert request.get("count", 1) == number


@pytest.mark.parametrize("name", CASES)
def test_other_commands_go_on_refusing_them(name: str, tmp_path: Path):
    file = tmp_path / "in.yaml"
    file.write_text(CASES[name][0])
    refused = [each for each in read_sources([str(file)], io.BytesIO()) if isinstance(each, Problem)]
    assert [(each.code, each.severity) for each in refused] == [(CODE, "error")]


def test_a_program_is_written_of_what_counts(tmp_path: Path):
    file = tmp_path / "in.yaml"
    file.write_text(CASES["limits"][0])
    done = migrate([str(file)], to="components", whole_gpus=True, kubernetes="1.37")
    assert done.program is not None
    assert "count=2" in done.program.text


def test_files_without_such_keys_have_no_warning(tmp_path: Path):
    file = tmp_path / "in.yaml"
    file.write_text(a_pod())
    assert migrate([str(file)], whole_gpus=True, kubernetes="1.37").report.problems == []
    assert len(read_manifests(a_pod())) == 1
