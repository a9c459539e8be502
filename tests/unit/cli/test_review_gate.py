from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '%s'}\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: gone}\n---\n"
BROKEN = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: B_D}\nspec: {}\n---\n"


@pytest.fixture
def states(tree):
    """Writes one of four states: nothing, a change, a danger, a problem."""
    tree.write("k/all.yaml", NAMESPACE + CONFIG % 1)
    tree.commit()

    def write(state: str) -> None:
        texts = {
            "nothing": NAMESPACE + CONFIG % 1,
            "change": NAMESPACE + CONFIG % 2,
            "danger": CONFIG % 1,
            "problem": BROKEN + NAMESPACE + CONFIG % 1,
        }
        tree.write("k/all.yaml", texts[state])

    return write


@pytest.mark.parametrize(
    ("state", "codes"),
    [("nothing", (0, 0, 0)), ("change", (0, 0, 1)), ("danger", (0, 1, 1)), ("problem", (1, 1, 1))],
)
def test_each_gate_includes_those_before_it(states, review, state: str, codes: tuple[int, ...]):
    states(state)
    found = tuple(review("k", "--fail-on", gate).code for gate in ("problem", "danger", "change"))
    assert found == codes


def test_every_form_is_printed_and_written(states, review, tree):
    states("danger")
    files = {form: f"out.{form}" for form in ("markdown", "html", "json", "sarif", "junit")}
    answer = review("k", *(part for form, name in files.items() for part in (f"--{form}", name)))
    assert answer.code == 0, answer.err
    for form, name in files.items():
        assert f"wrote {name}" in answer.err
        assert review("k", "--format", form).out == (tree.root / name).read_text()
    assert json.loads((tree.root / "out.json").read_text())["source"] == "manifests"
    assert json.loads((tree.root / "out.sarif").read_text())["runs"]
    ET.parse(tree.root / "out.junit")  # noqa: S314  (it is our own)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--fail-on", "nothing"),
        ("--source", "terraform"),
        ("--base", "HEAD", "--base-path", "k"),
        ("--fleet", "hgx-h100", "--snapshot", "k/all.yaml"),
        ("--refresh",),
    ],
)
def test_wrong_use_ends_with_2(states, review, arguments: tuple[str, ...]):
    answer = review("k", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert any(option in answer.err for option in arguments)


def test_a_report_that_cannot_be_written_ends_with_2_and_leaves_nothing(states, review, tree):
    answer = review("k", "--markdown", "absent/review.md")
    assert answer.code == 2
    assert "report-not-written" in answer.codes
    assert not (tree.root / "absent").exists()


def test_a_format_that_is_none_is_told_before_anything_runs(states, review):
    answer = review("k", "--format", "pdf", "--base", "nope")
    assert (answer.code, answer.codes) == (2, set())
    assert "'pdf' is none of text, markdown, json, html, sarif, junit" in " ".join(answer.err.split())


def test_the_same_input_gives_the_same_bytes(states, review):
    states("danger")
    for form in ("text", "markdown", "html", "json", "sarif", "junit"):
        assert review("k", "--format", form).out == review("k", "--format", form).out


CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ml}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: %s}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: c}]}}]
  resourceClaims: [{name: c, resourceClaimName: c}]
"""


def test_a_class_that_nobody_knows_is_told_without_a_fleet_too(review, tree):
    tree.write("k/all.yaml", CLAIM % "gpus-of-nobody")
    tree.commit()
    answer = review("k")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("✓ no problems, 1 warning · not placed: no fleet named")
    assert "[class-not-known]" in answer.out
    tree.write("k/all.yaml", CLAIM % "gpu.nvidia.com")
    assert "class-not-known" not in review("k").out


def test_what_is_not_decided_has_no_tick_and_a_gate_of_its_own(review, tree):
    tree.write("k/all.yaml", CLAIM % "gpus-of-nobody")
    tree.commit()
    found = [review("k", "--fleet", "hgx-h100", "--fail-on", gate) for gate in ("problem", "undecided")]
    assert [each.code for each in found] == [0, 1]
    assert all(each.out.startswith("? no problems") for each in found)


def test_a_claim_that_cannot_change_points_at_its_field_and_is_named_once(review, tree):
    template = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t, namespace: ml}\nspec:\n"
        "  spec:\n    devices:\n      requests:\n      - name: r\n        exactly:\n"
        "          deviceClassName: gpu.nvidia.com\n          count: %s\n"
    )
    tree.write("k/all.yaml", template % 1)
    tree.commit()
    tree.write("k/all.yaml", template % 2)
    line = next(line for line in review("k").out.splitlines() if "claim-spec-immutable" in line)
    assert line.startswith("problem: k/all.yaml:11:")
    assert line.count("ResourceClaimTemplate ml/t") == 1
    assert "what uses it stops then" not in review("k").out
