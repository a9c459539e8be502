"""Components, commands and the settings of a stack name the same gates, so that they give the same answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dra_infra as dra
from dra_infra.answers import check, read_scene, simulate
from dra_infra.answers.settings import load_checked
from dra_infra.errors import InvalidSpecError, ProgramError
from dra_infra.program.synth import synth_function
from dra_infra.target import read_gates
from tests.unit.cli.conftest import Answer, Tree

TAINTS = "DRADeviceTaints"
MINOR = "1.35"
"""A minor that has the gate, off where nobody sets it."""

PROGRAM = """
    import dra_infra as dra

    dra.GpuClaimTemplate(
        "trainer",
        object_name="trainer",
        namespace="ml",
        device_class="gpu.nvidia.com",
        tolerations=[dra.Toleration(key="example.com/service", effect="NoSchedule")],
    )
"""
STACK = f"config:\n  dra-infra:fleet: hgx-h100 x 1\n  dra-infra:kubernetes: '{MINOR}'\n"
OF_STACK = f"  dra-infra:gates:\n    {TAINTS}: true\n"


@pytest.fixture
def folder(tree: Tree) -> Path:
    tree.write("Pulumi.yaml", "name: app\nruntime: python\n")
    tree.write("__main__.py", PROGRAM)
    tree.write("Pulumi.dev.yaml", STACK)
    tree.commit()
    return tree.root


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["simulate"], 1), (["explain", "template/trainer", ".", "--namespace", "ml"], 2)],
)
def test_a_gate_of_the_command_reaches_the_components_of_the_program(
    folder: Path, command: Callable[..., Answer], arguments: list[str], code: int
):
    refused = command(*arguments, cwd=folder)
    assert refused.code == code
    assert "needs-newer-kubernetes" in refused.codes
    accepted = command(*arguments, "--gate", f"{TAINTS}=true", cwd=folder)
    assert (accepted.code, accepted.codes) == (0, set())
    assert f"gate {TAINTS}=true" in accepted.out


def test_a_gate_of_the_review_reaches_the_components_of_both_sides(
    tree: Tree, folder: Path, review: Callable[..., Answer]
):
    tree.write("__main__.py", PROGRAM + PROGRAM.replace("trainer", "server"))
    answer = review("--gate", f"{TAINTS}=true", "--format", "json")
    data = json.loads(answer.out)
    assert (answer.code, data["problems"]) == (0, [])
    assert (data["counts"]["created"], data["counts"]["unchanged"]) == (1, 1)
    assert data["provenance"]["kubernetes"] == [
        {"minor": MINOR, "patch": "1.35.9", "rules": "1.35.9", "gates": {TAINTS: True}}
    ]


@pytest.mark.parametrize("arguments", [["synth"], ["simulate"], ["review"]])
def test_gates_of_the_stack_count_in_every_command(
    folder: Path, command: Callable[..., Answer], arguments: list[str]
):
    (folder / "Pulumi.dev.yaml").write_text(STACK + OF_STACK)
    answer = command(*arguments, cwd=folder)
    assert answer.code == 0, answer.err
    assert "needs-newer-kubernetes" not in answer.codes
    if arguments != ["synth"]:
        assert f"gate {TAINTS}=true" in answer.out


def test_a_gate_of_the_command_is_added_to_those_of_the_stack(folder: Path):
    (folder / "Pulumi.dev.yaml").write_text(STACK + OF_STACK)
    scene = read_scene(folder, gates={"DRAConsumableCapacity": True})
    assert scene.target.gates == {TAINTS: True, "DRAConsumableCapacity": True}
    assert simulate(scene).exit_code == 0


def test_a_gate_of_the_command_has_precedence_over_the_stack(folder: Path):
    (folder / "Pulumi.dev.yaml").write_text(STACK + OF_STACK)
    scene = read_scene(folder, gates={TAINTS: False})
    assert scene.target.gates == {TAINTS: False}
    assert [each.code for each in check(scene).problems] == ["needs-newer-kubernetes"]


def test_a_component_that_names_its_target_keeps_the_gates_of_that():
    def program() -> None:
        target = dra.ClusterTarget(kubernetes=MINOR)
        tolerations = [dra.Toleration(key="example.com/service", effect="NoSchedule")]
        dra.GpuClaimTemplate(
            "it", namespace="ml", device_class="gpu.nvidia.com", tolerations=tolerations, target=target
        )

    made = synth_function(program, config={"dra-infra:gates": f'{{"{TAINTS}": true}}'})
    assert [(each.code, each.path) for each in made.problems] == [
        ("needs-newer-kubernetes", 'GpuClaimTemplate("it").tolerations')
    ]


@pytest.mark.parametrize(
    ("text", "gates"),
    [("", {}), ('{"A": true}', {"A": True}), ('{"A": "false", "B": "true"}', {"A": False, "B": True})],
)
def test_gates_are_read_as_the_engine_hands_them_to_a_program(text: str, gates: dict[str, bool]):
    assert read_gates(text) == gates


@pytest.mark.parametrize("text", ["true", "[]", '{"A": 1}', '{"A": "on"}', "A=true", '{"A": null}'])
def test_another_form_of_gates_is_refused(text: str):
    with pytest.raises(InvalidSpecError) as error:
        read_gates(text)
    assert [(each.path, each.code) for each in error.value.problems] == [("dra-infra:gates", "wrong-type")]


@pytest.mark.parametrize(
    ("gates", "path", "code"),
    [
        ("on", "dra-infra:gates", "wrong-type"),
        ("{DRADeviceTaint: true}", "gates['DRADeviceTaint']", "unknown-gate"),
        ("{DynamicResourceAllocation: false}", "gates['DynamicResourceAllocation']", "locked-gate"),
    ],
)
def test_gates_that_the_cluster_cannot_have_are_refused_before_the_program_runs(
    folder: Path, gates: str, path: str, code: str
):
    (folder / "Pulumi.dev.yaml").write_text(f"{STACK}  dra-infra:gates: {gates}\n")
    with pytest.raises(ProgramError) as error:
        load_checked(folder, None, {})
    assert [(each.path, each.code) for each in error.value.problems] == [(path, code)]


def test_a_setting_that_is_nested_without_end_is_refused(folder: Path, command: Callable[..., Answer]):
    (folder / "Pulumi.dev.yaml").write_text(STACK + f"  dra-infra:gates: '{'[' * 200_000}'\n")
    answer = command("simulate", cwd=folder)
    assert answer.code == 2
    assert answer.codes == {"wrong-type"}


def test_gates_of_the_stack_and_of_the_command_have_to_go_together(
    folder: Path, command: Callable[..., Answer]
):
    gates = "  dra-infra:gates:\n    DRADeviceTaints: false\n"
    (folder / "Pulumi.dev.yaml").write_text(STACK + gates)
    answer = command("simulate", "--gate", "DRADeviceTaintRules=true", cwd=folder)
    assert answer.code == 2
    assert answer.codes == {"gate-needs-gate"}
