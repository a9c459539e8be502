"""Files of projects and stacks, and conventions of Pulumi's host: what a run without the engine reads, and what `up` sends.

Each program writes what it reads into a ConfigMap. These tests make the table in docs/pulumi.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from dra_infra.errors import ProgramError
from dra_infra.kubernetes.api import is_placeholder
from dra_infra.program.synth import synth
from dra_infra.program_objects import SECRET, Program
from tests.e2e.components.table_rows import assert_row, read_rows
from tests.support.lab import DRIVER, Lab
from tests.support.pages.problem_pages import area_of
from tools.engine_cli import Result
from tools.kubernetes_provider.values import SIGNATURE_KEY

pytestmark = pytest.mark.e2e

READ = 'config_map("settings", {"a": str(pulumi.Config().get("gpus"))}, name="settings")\n'
READ_SECRET = """
gpus = pulumi.Config().require_secret_int("gpus")
config_map("settings", {"a": gpus.apply(str)}, name="settings")
"""
READ_OBJECT = """
gpus = pulumi.Config().require_object("gpus")
config_map("settings", {"a": str(gpus)}, name="settings")
"""
READ_TOKEN = """
gpus = pulumi.Config().require_secret_object("gpus")
config_map("settings", {"a": gpus["team"], "b": gpus["token"]}, name="settings")
"""
READ_FILE = """
from pathlib import Path
text = pulumi.Output.from_input("gpus.txt").apply(lambda name: Path(name).read_text())
config_map("settings", {"a": text}, name="settings")
"""
ANNOTATIONS = """
import dataclasses
import typing

class Settings(typing.TypedDict):
    a: "str"

@pulumi.input_type
class GpuArgs:
    count: "pulumi.Input[int]" = pulumi.property("count")

class Team(pulumi.ComponentResource):
    gpus: "pulumi.Output[int]"

    def __init__(self, name: str, opts: "ResourceOptions | None" = None) -> None:
        super().__init__("example:index:Team", name, {}, opts)
        self.gpus = pulumi.Output.from_input(8)
        self.register_outputs({"gpus": self.gpus})

settings: Settings = {"a": typing.get_type_hints(Settings)["a"].__name__}
config_map("settings", settings, name="settings", labels={"gpus": Team("team").gpus.apply(str)})
"""
HOOK = """
def note(args: pulumi.ResourceHookArgs) -> None:
    print(args.urn)

hooks = pulumi.ResourceHookBinding(before_create=[pulumi.ResourceHook("note", note)])
config_map("settings", {"a": "8"}, name="settings", opts=ResourceOptions(hooks=hooks))
"""
COUNT = f"""
import dra_infra as dra
made = config_map("settings", name="settings")
count = made.id.apply(lambda id: 8)
claim = dra.GpuClaimTemplate("gpus", device_class={DRIVER!r}, count=count, namespace=NAMESPACE)
deployment("train", claim.object_name)
"""
NAME = f"""
import dra_infra as dra
made = config_map("settings", name="settings")
name = pulumi.Output.concat("gpus-", made.id.apply(lambda id: "1"))
claim = dra.GpuClaimTemplate("gpus", device_class={DRIVER!r}, namespace=NAMESPACE, object_name=name)
deployment("train", claim.object_name)
"""
CLASS = f"""
import dra_infra as dra
made = config_map("settings", name="settings")
name = pulumi.Output.concat(NAMESPACE, "-", made.id.apply(lambda id: "1"))
h100 = dra.GpuDeviceClass("h100", driver={DRIVER!r}, object_name=name)
claim = dra.GpuClaimTemplate("gpus", device_class=h100, namespace=NAMESPACE)
deployment("train", claim.object_name)
"""
SUBCLASS = f"""
import dra_infra as dra

class TeamClaim(dra.GpuClaimTemplate):
    pass

claim = TeamClaim("gpus", device_class={DRIVER!r}, namespace=NAMESPACE)
config_map("settings", {{"a": claim.object_name}}, name="settings")
"""


@dataclass(frozen=True)
class Case:
    """A project.

    Attributes:
        program: Of the project.
        settings: Keys of `Pulumi.yaml` beside those that every project has.
        stack: The stack's file; None for none.
        arrange: Moves files to where the project has them, or sets values, after all were written.
        path: Of the value that the table shows: kind of the object, and keys.
        is_known: Whether a run without the engine knows all that `up` sends.
        note: Of what is not known, in `synth` and reviews.
        code: Of the problem that a run without the engine has.
        refusal: What `pulumi up` says where it fails.
    """

    program: str = READ
    settings: Mapping[str, Any] = field(default_factory=dict)
    stack: Mapping[str, Any] | None = None
    arrange: Callable[[Lab], None] = lambda lab: None
    path: tuple[str | int, ...] = ("ConfigMap", "data", "a")
    is_known: bool = True
    note: str = ""
    code: str = ""
    refusal: str = ""


def move(files: Mapping[str, str]) -> Callable[[Lab], None]:
    """Return what moves files of a project to where it is to have them."""

    def arrange(lab: Lab) -> None:
        for old, new in files.items():
            target = lab.stack.directory / new
            target.parent.mkdir(exist_ok=True)
            (lab.stack.directory / old).rename(target)

    return arrange


def secret(lab: Lab) -> None:
    lab.stack.configure("gpus", "8", "--secret")


def secret_inside(lab: Lab) -> None:
    lab.stack.configure("gpus.team", "ml", "--path")
    lab.stack.configure("gpus.token", "hush", "--path", "--secret")


def text_file(lab: Lab) -> None:
    (lab.stack.directory / "gpus.txt").write_text("8")


COUNT_PATH = ("ResourceClaimTemplate", "spec", "spec", "devices", "requests", 0, "exactly", "count")
CLASS_PATH = (*COUNT_PATH[:-1], "deviceClassName")
EIGHT = {"config": {"project:gpus": 8}}
CASES = {
    "`Pulumi.yml` with `Pulumi.<stack>.yml`": Case(
        stack=EIGHT, arrange=move({"Pulumi.yaml": "Pulumi.yml", "Pulumi.dev.yaml": "Pulumi.dev.yml"})
    ),
    "`Pulumi.yaml` with `Pulumi.<stack>.yml`": Case(
        stack=EIGHT, arrange=move({"Pulumi.dev.yaml": "Pulumi.dev.yml"}), note="call it Pulumi.dev.yaml"
    ),
    "`stackConfigDir: stacks`": Case(
        settings={"stackConfigDir": "stacks"},
        stack=EIGHT,
        arrange=move({"Pulumi.dev.yaml": "stacks/Pulumi.dev.yaml"}),
    ),
    "`main: infra`": Case(
        settings={"main": "infra"}, stack=EIGHT, arrange=move({"__main__.py": "infra/__main__.py"})
    ),
    "a default under `config` of `Pulumi.yaml`": Case(
        settings={"config": {"gpus": {"type": "integer", "default": 8}}}
    ),
    "an object in both files": Case(
        READ_OBJECT,
        settings={"config": {"gpus": {"value": {"team": "ml", "count": 1}}}},
        stack={"config": {"project:gpus": {"count": 8}}},
    ),
    "an encrypted setting": Case(READ_SECRET, arrange=secret),
    "an object with an encrypted part": Case(READ_TOKEN, arrange=secret_inside),
    "`environment:`, on a backend without environments": Case(
        stack={"environment": ["acme/gpus"]},
        note="environment acme/gpus",
        refusal="does not support environments",
    ),
    "`pulumi:disable-default-providers`": Case(
        "config_map('settings', {})",
        stack={"config": {"pulumi:disable-default-providers": ["kubernetes"]}},
        code="default-provider-disabled",
        refusal="Default provider for 'kubernetes' disabled",
    ),
    "a relative path in an `apply`": Case(READ_FILE, arrange=text_file),
    "annotations as text": Case(ANNOTATIONS),
    "a resource hook": Case(HOOK, note="hook"),
    "`count` that is known after `up`": Case(COUNT, path=COUNT_PATH, is_known=False),
    "a claim's name that is known after `up`": Case(
        NAME, path=("ResourceClaimTemplate", "metadata", "name"), is_known=False
    ),
    "a class's name that is known after `up`": Case(CLASS, path=CLASS_PATH, is_known=False),
    "a subclass of a component": Case(SUBCLASS),
    "two resources for one object": Case(
        'config_map("settings", {}, name="settings")\nconfig_map("two", {}, name="settings")',
        code="duplicate-object",
        refusal="already exists",
    ),
}
TABLE = "conventions"


@pytest.mark.parametrize(("title", "case"), CASES.items(), ids=CASES.keys())
def test_a_run_without_the_engine_reads_what_up_reads(lab: Lab, title: str, case: Case) -> None:
    write(lab, case)

    program = synth_or_problems(lab)
    up = lab.stack.up()

    assert up.exit_code == (1 if case.refusal else 0), up.text
    assert case.refusal in up.text
    codes = [each.code for each in program.problems if each.severity == "error"]
    assert codes == ([case.code] if case.code else [])
    assert case.note in " ".join(map(str, program.not_seen))
    if not case.refusal:
        assert_same_objects(program, up, is_known=case.is_known)
    assert_row(TABLE, (title, read_by(program, case, lab.namespace), sent_by(up, case, lab.namespace)), CASES)


def test_the_table_has_a_row_for_each_case_and_no_other() -> None:
    assert [*read_rows(TABLE)] == [*CASES]


def write(lab: Lab, case: Case) -> None:
    """Write the files of a project."""
    lab.write(case.program)
    project = lab.stack.directory / "Pulumi.yaml"
    project.write_text(yaml.safe_dump({**yaml.safe_load(project.read_text()), **case.settings}))
    if case.stack is not None:
        stack = lab.stack.directory / f"Pulumi.{lab.stack.name}.yaml"
        stack.write_text(yaml.safe_dump({**yaml.safe_load(stack.read_text()), **case.stack}))
    case.arrange(lab)


def synth_or_problems(lab: Lab) -> Program:
    """Run the program without the engine; what it cannot run has problems alone."""
    try:
        return synth(lab.stack.directory, stack=lab.stack.name)
    except ProgramError as error:
        return Program(project="project", stack=lab.stack.name, problems=tuple(error.problems))


Objects = dict[str, Mapping[str, Any]]
"""What was asked for, by URN."""


def objects_of(program: Program) -> Objects:
    return {each.urn: each.manifest for each in program.objects}


def sent_objects(up: Result) -> Objects:
    made = [each for each in up.steps if each.operation == "create" and each.type.startswith("kubernetes:")]
    return {each.urn: without_secrets(each.inputs) for each in made}


def without_secrets(value: Any) -> Any:
    """A value of the log, in which a secret is a mapping of its own."""
    if isinstance(value, Mapping):
        return (
            SECRET if SIGNATURE_KEY in value else {key: without_secrets(each) for key, each in value.items()}
        )
    return [*map(without_secrets, value)] if isinstance(value, list) else value


def assert_same_objects(program: Program, up: Result, *, is_known: bool) -> None:
    """Check that the engine sent what the run without it says, or one that it does not know."""
    offline, sent = objects_of(program), sent_objects(up)
    assert [*offline] == sorted(sent, key=[*offline].index)
    differing = [urn for urn in offline if not agree(offline[urn], sent[urn])]
    assert differing == []
    assert is_known == all(offline[urn] == sent[urn] for urn in offline)


def agree(offline: Any, sent: Any) -> bool:
    """Whether a value is the one that was sent, or stands for any."""
    if is_placeholder(offline):
        return True
    if isinstance(offline, Mapping) and isinstance(sent, Mapping):
        return offline.keys() == sent.keys() and all(agree(offline[key], sent[key]) for key in offline)
    if isinstance(offline, list) and isinstance(sent, list):
        return len(offline) == len(sent) and all(map(agree, offline, sent))
    return bool(offline == sent)


def value_of(objects: Objects, path: tuple[str | int, ...], namespace: str) -> str:
    """The value that the table shows."""
    value: Any = next(each for each in objects.values() if each["kind"] == path[0])
    for key in path[1:]:
        value = value[key]
    return f"`{value}`".replace(namespace, "ml")


def read_by(program: Program, case: Case, namespace: str) -> str:
    """What the run without the engine says."""
    errors = [each for each in program.problems if each.severity == "error"]
    if errors:
        return "; ".join(f"[`{each.code}`](errors/{area_of(each.code)}.md#{each.code})" for each in errors)
    notes = map(str, program.not_seen)
    return "; ".join([value_of(objects_of(program), case.path, namespace), *notes])


def sent_by(up: Result, case: Case, namespace: str) -> str:
    """What the engine sent."""
    return f"fails: `{case.refusal}`" if case.refusal else value_of(sent_objects(up), case.path, namespace)
