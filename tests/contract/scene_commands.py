"""A scene in files, what the commands print about it, and where that differs from the answers in Python."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from dra_infra.answers.explaining import explain
from dra_infra.answers.migrating import migrate
from dra_infra.answers.reading import ClusterOptions, read_scene
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import FITS, does_work, simulate
from dra_infra.cli.app import app
from dra_infra.cli.simulate import describe
from dra_infra.kubernetes.api import CLAIM_KINDS
from tests.contract.scenes import NAMESPACE, WORKLOADS, DrawnScene
from tests.contract.surfaces import ALIASES


@dataclass(frozen=True)
class Printed:
    """What a command ended with.

    Args:
        exit_code: Its exit code.
        data: The JSON on standard output.
    """

    exit_code: int
    data: dict[str, Any]


@dataclass(frozen=True)
class SceneFolder:
    """The files of a scene in a folder.

    Args:
        folder: The folder.
        drawn: The scene.
    """

    folder: Path
    drawn: DrawnScene

    @classmethod
    def write(cls, folder: Path, drawn: DrawnScene) -> SceneFolder:
        """Write the objects, and the fleet or the snapshot; what an earlier scene left there goes."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "before").mkdir(parents=True)
        (folder / "after").mkdir()
        written = cls(folder, drawn)
        written.manifests.write_text(yaml.safe_dump_all(copy.deepcopy(drawn.manifests)))
        hardware = [drawn.pools] if drawn.pools is not None else [*drawn.nodes, *(drawn.running or ())]
        written.hardware.write_text(yaml.safe_dump_all(copy.deepcopy(hardware)))
        return written

    @property
    def manifests(self) -> Path:
        """The file of the objects."""
        return self.folder / "after" / "program.yaml"

    @property
    def hardware(self) -> Path:
        """The file of the fleet or snapshot."""
        return self.folder / ("fleet.yaml" if self.drawn.running is None else "cluster.yaml")

    @cached_property
    def scene(self) -> Scene:
        """The scene as `dra_infra.answers` reads it from the files."""
        return self.read(self.manifests)

    def read(self, manifests: Path) -> Scene:
        """Read objects as `dra_infra.answers` does, on the hardware of the scene."""
        return read_scene(manifests, **self.read_options)

    @property
    def read_options(self) -> ClusterOptions:
        """The options of `read_scene`, which are those that commands take."""
        is_fleet = self.drawn.running is None
        return ClusterOptions(
            fleet=str(self.hardware) if is_fleet else None,
            snapshot=None if is_fleet else self.hardware,
            kubernetes=self.drawn.kubernetes,
            gates=self.drawn.gates,
        )

    @cached_property
    def options(self) -> list[str]:
        """The options that say which hardware, minor and gates the question is about."""
        hardware = "--fleet" if self.drawn.running is None else "--snapshot"
        minor = ["--kubernetes", self.drawn.kubernetes] if self.drawn.kubernetes else []
        gates = [f"--gate={name}={str(value).lower()}" for name, value in self.drawn.gates.items()]
        return [hardware, str(self.hardware), *minor, *gates]

    def ask(self, command: str, *arguments: str) -> Printed:
        """Run a command about the scene, and read the JSON that it prints."""
        ran = CliRunner().invoke(app, [command, *arguments, *self.options])
        if ran.exception is not None and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        assert ran.stdout, (command, ran.exit_code, ran.stderr)
        return Printed(ran.exit_code, json.loads(ran.stdout))


def find_differences(written: SceneFolder) -> Iterator[str]:
    """Yield a line for each command that says or ends otherwise than the answer in Python."""
    yield from _read(written)
    yield from _simulate(written)
    yield from _explain(written)
    yield from _review(written)
    if written.drawn.running is None:
        yield from _migrate(written)


def _read(written: SceneFolder) -> Iterator[str]:
    """Compare the scene of the files with the one that was drawn: reading may change the order of objects, and no verdict."""
    first, then = (simulate(scene).placement for scene in (written.drawn.scene, written.scene))
    assert first is not None
    assert then is not None
    found, expected = (
        (placement.joint.verdict, {each.owner: each.verdict for each in placement.workloads})
        for placement in (then, first)
    )
    if found != expected:
        yield f"read_scene: {found}, of the same objects in Python {expected}"


def _simulate(written: SceneFolder) -> Iterator[str]:
    answer = simulate(written.scene)
    printed = written.ask("simulate", str(written.manifests), "--json")
    placement = answer.placement
    assert placement is not None
    expected = {
        "exit code": answer.exit_code,
        "workloads": [
            (str(each.owner), each.verdict, [(reason.code, reason.message) for reason in each.reasons])
            for each in placement.workloads
        ],
        "joint": placement.joint.to_data(),
        "growth": placement.growth.to_data() if placement.growth else None,
        "problems": sorted((each.code, each.message) for each in answer.checked.problems),
    }
    yield from _differ(
        "simulate",
        expected,
        {
            "exit code": printed.exit_code,
            "workloads": [
                (
                    _name_of(each["object"]),
                    each["verdict"],
                    [(reason["code"], reason["message"]) for reason in each["reasons"]],
                )
                for each in printed.data["workloads"]
            ],
            "joint": printed.data["joint"],
            "growth": printed.data["growth"],
            "problems": sorted((each["code"], each["message"]) for each in printed.data["problems"]),
        },
    )


def _explain(written: SceneFolder) -> Iterator[str]:
    """Ask about a claim template and a workload, by words that users have for their kinds."""
    template, workload = (next(iter(written.drawn.of_kind(*kinds))) for kinds in (CLAIM_KINDS, WORKLOADS))
    for each in (template, workload):
        name = f"{ALIASES[each['kind']][-1]}/{each['metadata']['name']}"
        answer = explain(written.scene, name, namespace=NAMESPACE)
        printed = written.ask("explain", name, str(written.manifests), "--namespace", NAMESPACE, "--json")
        expected = {
            "exit code": answer.exit_code,
            "verdict": answer.verdict,
            "fits": answer.fits,
            "causes": [(cause.code, cause.message) for cause in answer.causes],
            "undecided": [reason.message for reason in answer.undecided],
            "joint": answer.joint.to_data() if answer.joint else None,
            "growth": answer.growth.to_data() if answer.growth else None,
        }
        causes = [(cause["code"], cause["message"]) for cause in printed.data["causes"]]
        told = {**printed.data, "exit code": printed.exit_code, "causes": causes}
        yield from _differ(f"explain {name}", expected, told)


def _review(written: SceneFolder) -> Iterator[str]:
    """Review the objects against an empty folder, so that each of them is new."""
    scene, drawn = written.scene, written.drawn
    answer = compare(
        replace(scene.program, objects=()),
        scene.program,
        base_label="main",
        fleet=scene.fleet,
        snapshot=drawn.snapshot,
    )
    after = answer.after
    assert after is not None
    folders = [str(written.manifests.parent), "--base-path", str(written.folder / "before")]
    printed = written.ask("review", *folders, "--format", "json", "--fail-on", "undecided")
    expected = {
        "exit code": int(answer.is_blocked("undecided")),
        "failed": answer.failed,
        "grade": answer.grade,
        "joint": (after.joint.verdict, [*after.joint.reasons]),
        "growth": answer.growth.after.verdict if answer.growth else None,
        "workloads": sorted((str(each.owner), each.after.verdict) for each in answer.workloads if each.after),
        "problems": sorted((each.code, each.severity) for each in answer.problems),
    }
    joint = printed.data["fleet"]["joint"]
    growth = printed.data["growth"]
    told = {
        **printed.data,
        "exit code": printed.exit_code,
        "joint": (joint["verdict"], joint["reasons"]),
        "growth": growth["verdict"] if growth else None,
        "workloads": sorted(
            (_name_of(each["object"]), each["after"]["verdict"])
            for each in printed.data["workloads"]
            if each["after"]
        ),
        "problems": sorted((each["code"], each["severity"]) for each in printed.data["problems"]),
    }
    yield from _differ("review", expected, told)


def _name_of(ref: dict[str, Any]) -> str:
    return f"{ref['kind']} {ref['namespace']}/{ref['name']}"


def _migrate(written: SceneFolder) -> Iterator[str]:
    """Compare `migrate --fleet` with `simulate` on the files that it writes."""
    output = written.folder / "migrated"
    arguments = [str(written.manifests), "--whole-gpus", "--json", "--output", str(output)]
    printed = written.ask("migrate", *arguments)
    answer = simulate(written.read(output if output.exists() else written.manifests))
    assert answer.placement is not None
    missing = [line for line in describe(answer.placement, brief=True) if line not in printed.data["notes"]]
    if missing:
        yield f"migrate notes {printed.data['notes']}, simulate of what it writes says {missing}"
    migrated = migrate([str(written.manifests)], whole_gpus=True, **written.read_options)
    assert migrated.placement is not None
    found, expected = (
        (each.joint, [(placed.owner, placed.verdict, placed.reasons) for placed in each.workloads])
        for each in (migrated.placement, answer.placement)
    )
    if (found, printed.exit_code) != (expected, migrated.exit_code()):
        yield f"migrate ends with {printed.exit_code}, in Python {migrated.exit_code()}: {found}, simulate: {expected}"
    works = does_work(answer.placement)
    if printed.exit_code == FITS and not works:
        yield f"migrate ends with 0, and what it writes does not fit: {answer.placement.joint}"
    is_other = printed.data["outcomes"]["decide"] or printed.data["errors"]
    if printed.exit_code != FITS and answer.exit_code == FITS and not is_other:
        yield f"migrate ends with {printed.exit_code}, simulate of what it writes with 0"


def _differ(command: str, expected: dict[str, Any], printed: dict[str, Any]) -> Iterator[str]:
    for key, value in expected.items():
        there = json.loads(json.dumps(printed[key]))
        if there != json.loads(json.dumps(value)):
            yield f"{command}: {key} is {there}, in Python {value}"
