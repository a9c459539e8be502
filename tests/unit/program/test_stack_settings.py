from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

import dra_infra as dra
from dra_infra.errors import ProgramError
from dra_infra.program.project import Project, load_project
from dra_infra.program.stack_settings import UNDECRYPTABLE
from dra_infra.program.synth import synth
from dra_infra.program_objects import SECRET, UNKNOWN


@pytest.fixture
def project(tmp_path: Path):
    """Write a project and read it."""

    def read(files: Mapping[str, str], *, stack: str | None = None, settings: str = "") -> Project:
        default = {} if "Pulumi.yml" in files else {"Pulumi.yaml": f"name: app\nruntime: python\n{settings}"}
        for name, text in {"__main__.py": "", **default, **files}.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        return load_project(tmp_path, stack)

    return read


FILE = "config:\n  app:gpus: 8\n"


@pytest.mark.parametrize(
    "settings", ["stackConfigDir: stacks", "config: stacks", "stackConfigDir: ./stacks/"]
)
@pytest.mark.parametrize("stack", ["prod", "acme/app/prod", None])
def test_the_files_of_stacks_lie_where_the_project_says(project, settings: str, stack: str | None):
    read = project({"stacks/Pulumi.prod.yaml": FILE}, stack=stack, settings=settings)
    assert read.stack == "prod"
    assert read.config == {"app:gpus": "8"}
    assert read.not_seen == ()


def test_a_project_of_the_other_ending_has_stack_files_of_that_ending(project):
    files = {"Pulumi.yml": "name: app\nruntime: python\n", "Pulumi.prod.yml": FILE}
    assert project(files).config == {"app:gpus": "8"}
    assert project(files, stack="prod").not_seen == ()


def test_a_stack_file_of_another_ending_than_the_projects_is_named(project):
    (note,) = project({"Pulumi.prod.yml": FILE}, stack="prod").not_seen
    assert (
        str(note)
        == "configuration of stack prod: Pulumi does not read Pulumi.prod.yml here: call it Pulumi.prod.yaml"
    )


def test_a_stack_file_whose_config_is_no_mapping_is_a_problem(project):
    with pytest.raises(ProgramError, match="config is not a mapping"):
        project({"Pulumi.dev.yaml": "config: [a]\n"})


@pytest.mark.parametrize(
    "environment",
    ["[acme/gpus]", "{imports: [acme/gpus]}", "[acme/gpus@3]", "{imports: [{acme/gpus: {merge: true}}]}"],
)
def test_an_environment_is_named_unless_a_file_stands_in_for_it(project, environment: str):
    stack = f"environment: {environment}\nconfig:\n  app:a: b\n"
    read = project({"Pulumi.dev.yaml": stack})
    (note,) = read.not_seen
    assert note.what == "environment"
    assert "Pulumi.dev.yaml imports it, and its settings are not known here" in str(note)
    assert read.config == {"app:a": "b"}
    values = {
        "pulumiConfig": {"gpus": 8, "app:a": "of the environment", "token": "[secret]", "o": {"a": 1}},
        "environmentVariables": {"REGION": "eu", "TOKEN": "[secret]"},
    }
    files = {
        "Pulumi.dev.yaml": stack + "  app:o:\n    b: 2\n",
        "dra-infra.yaml": "environments: {acme/gpus: gpus.json}",
        "gpus.json": json.dumps(values),
    }
    read = project(files, settings="config: {app:gpus: 1, app:n: 3}")
    assert dict(read.config) == {
        "app:a": "b",
        "app:gpus": "8",
        "app:n": "3",
        "app:token": UNDECRYPTABLE,
        "app:o": '{"a":1,"b":2}',
    }
    assert read.secret_keys == ("app:token",)
    assert read.variables == {"REGION": "eu"}
    assert "environment variable TOKEN: its environment sets it to a secret" in map(str, read.not_seen)
    assert "gpus.json stands in for its values" in str(read.not_seen[0])


@pytest.fixture
def merged(project):
    """Read a stack file and values of environments as Pulumi 3.276.0 does.

    The expected settings are those of a program with Pulumi's own code: `EvalEnvironment` (sdk/go/common/esc/eval/eval.go), then
    `ApplyProjectConfig` (pkg/workspace/config.go) and `Map.Decrypt` (sdk/go/common/resource/config/map.go).
    """

    def read(stack: str, environments: Mapping[str, object], settings: str = "") -> Project:
        files = {f"{name}.json": json.dumps(values) for name, values in environments.items()}
        stand_ins = json.dumps({"environments": {name: f"{name}.json" for name in environments}})
        return project({"Pulumi.dev.yaml": stack, "dra-infra.yaml": stand_ins, **files}, settings=settings)

    return read


@pytest.mark.parametrize(
    ("stack", "environments", "config"),
    [
        (
            "environment: [a, b]",
            {"a": {"x": 1, "o": {"a": 1, "l": [1, 2]}}, "b": {"x": 2, "o": {"b": 2, "l": [3]}}},
            {"app:o": '{"a":1,"b":2,"l":[3]}', "app:x": "2"},
        ),
        ("environment: [a, b, a]", {"a": {"x": 1}, "b": {"x": 2}}, {"app:x": "1"}),
        (
            "environment: [a]\nconfig:\n  app:o: {b: 2}\n  app:s: text",
            {"a": {"app:o": {"a": 1, "b": {"c": 1}}, "s": {"a": 1}, "other:k": "v"}},
            {"app:o": '{"a":1,"b":2}', "app:s": "text", "other:k": "v"},
        ),
        (
            "environment: {imports: [a], values: {pulumiConfig: {o: {b: 2}, x: 3}}}",
            {"a": {"o": {"a": 1, "b": 1}, "x": 1, "z": 1}},
            {"app:o": '{"a":1,"b":2}', "app:x": "3", "app:z": "1"},
        ),
        (
            "environment: {imports: [a: {merge: false}, b: {merge: true}]}",
            {"a": {"x": 1}, "b": {"z": 1}},
            {"app:z": "1"},
        ),
        ("environment:\nconfig: {app:a: b}", {}, {"app:a": "b"}),
        ("environment: []\nconfig: {app:a: b}", {}, {"app:a": "b"}),
        ("environment: {pulumiConfig: {a: 1}}", {}, {}),
        ("environment: {values: {pulumiConfig: text}}", {}, {}),
        (
            "environment: [a]",
            {"a": {"b": True, "x": None, "f": 1.0, "l": [1, "a", True], "o": {"z": 1, "a": "<&>", "u": "é"}}},
            {
                "app:b": "true",
                "app:x": "null",
                "app:f": "1",
                "app:l": '[1,"a",true]',
                "app:o": '{"a":"\\u003c\\u0026\\u003e","u":"é","z":1}',
            },
        ),
        ("environment: [a]\nconfig:\n  app:x:", {"a": {"x": 1}}, {"app:x": ""}),
        (
            "environment: [a]\nconfig: {app:o: {x: null}}",
            {"a": {"o": {"x": 1, "z": 2}}},
            {"app:o": '{"x":null,"z":2}'},
        ),
        ("config: {app:o: {secure: {a: 1}}}", {}, {"app:o": '{"secure":{"a":1}}'}),
        ("config: {app:config:x: 1, gpus: 8}", {}, {"app:x": "1", "app:gpus": "8"}),
        (
            "environment: {values: {pulumiConfig: {a: '$${x}', b: '$$5', c: '$5', e: '$$$$', k$$: 1}}}",
            {},
            {"app:a": "${x}", "app:b": "$5", "app:c": "$5", "app:e": "$$", "app:k$": "1"},
        ),
    ],
)
def test_settings_are_merged_as_pulumi_merges_them(
    merged, stack: str, environments: Mapping[str, object], config: Mapping[str, str]
):
    values = {name: {"pulumiConfig": each} for name, each in environments.items()}
    assert merged(stack, values).config == config


def test_defaults_of_the_project_come_last_and_are_not_merged(merged):
    settings = (
        "config: {a: {default: 1}, b: {value: 2}, o: {default: {x: 1}}, c: {default: null, value: 3}, s: 4}"
    )
    stack = "environment: [a]\nconfig: {app:o: {z: 2}, app:s: null}"
    config = merged(stack, {"a": {"pulumiConfig": {"a": 2}}}, settings).config
    assert config == {"app:a": "2", "app:b": "2", "app:c": "3", "app:o": '{"z":2}', "app:s": ""}


def test_words_that_only_yaml_1_1_reads_as_true_or_false_are_texts(project):
    stack = """
        config:
          app:a: yes
          app:b: &off off   # on
          app:c: *off
          app:d: [on, true, {y: No, n: "é on"}]
          app:e: "no"
          app:f: !!bool yes
    """
    read = project({"Pulumi.dev.yaml": stack}, settings="config: {n: 1, y: N}")
    assert read.config == {
        "app:a": "yes",
        "app:b": "off",
        "app:c": "off",
        "app:d": '["on",true,{"n":"é on","y":"No"}]',
        "app:e": "no",
        "app:f": "true",
        "app:n": "1",
        "app:y": "N",
    }


def test_variables_of_environments_are_plain_values_as_text(merged):
    variables = {"S": "s", "N": 8, "F": 1.5, "B": True, "Z": None, "L": [1], "O": {"a": 1}, "U": "[unknown]"}
    environment = {"environmentVariables": variables, "files": {"KUBECONFIG": "abc"}}
    read = merged("environment: [a, b]", {"a": environment, "b": {"environmentVariables": {"S": "t"}}})
    assert read.variables == {"S": "t", "N": "8", "F": "1.5", "B": "true", "Z": ""}
    assert [str(each) for each in read.not_seen[2:]] == [
        "environment variable U: an environment computes it",
        "environment variable KUBECONFIG: its environment sets it to the path of a temporary file, which is not written here",
    ]


def test_a_value_that_only_opening_the_environment_gives_is_not_known(merged):
    read = merged("environment: [a]", {"a": {"pulumiConfig": {"x": "[unknown]"}}})
    assert read.config == {"app:x": UNDECRYPTABLE}
    assert str(read.not_seen[-1]) == "configuration app:x: an environment computes it"


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ("environment: acme/gpus", "environment is not a list of environments"),
        ("environment: {imports: acme/gpus}", "environment.imports is not a list of environments"),
        (
            "environment: [acme/gpus: {merge: false}]",
            "environment is a list, in which an entry can have no options",
        ),
        ("config: {a:b:c: 1}", "'a:b:c' is not a key of settings"),
    ],
)
def test_an_environment_or_a_key_that_pulumi_refuses_is_a_problem(project, stack: str, message: str):
    with pytest.raises(ProgramError) as error:
        project({"Pulumi.dev.yaml": stack})
    assert error.value.problems[0].message == message


def test_what_a_stack_file_says_of_an_environment_itself_counts(project):
    environment = """
        environment:
          values:
            region: eu
            pulumiConfig:
              gpus: 8
              region: ${region}
              token:
                fn::secret: {ciphertext: AAAA}
    """
    read = project({"Pulumi.dev.yaml": environment})
    assert read.config == {"app:gpus": "8", "app:region": UNDECRYPTABLE, "app:token": UNDECRYPTABLE}
    assert read.secret_keys == ("app:token",)
    assert [str(each) for each in read.not_seen] == [
        "configuration app:region: an environment computes it",
        "secret configuration app:token: it cannot be decrypted here",
    ]


def test_variables_of_an_environment_are_there_while_the_program_runs(project, tmp_path: Path):
    program = """
        import os, pulumi_kubernetes as k8s
        k8s.core.v1.Namespace("n", metadata={"name": os.environ["REGION"]})
    """
    files = {
        "__main__.py": program,
        "Pulumi.dev.yaml": "environment: [acme/gpus]",
        "dra-infra.yaml": "environments: {acme/gpus: gpus.yaml}",
        "gpus.yaml": "environmentVariables: {REGION: eu}",
    }
    project(files)
    before = dict(os.environ)
    assert synth(tmp_path).objects[0].ref.name == "eu"
    assert dict(os.environ) == before


@pytest.mark.parametrize("values", ["- a", "a: [", "a: 1\n---\nb: 2"])
def test_a_stand_in_for_an_environment_that_is_none_is_a_problem(project, values: str):
    files = {
        "Pulumi.dev.yaml": "environment: [acme/gpus]",
        "dra-infra.yaml": "environments: {acme/gpus: gpus.yaml}",
        "gpus.yaml": values,
    }
    with pytest.raises(ProgramError) as error:
        project(files)
    assert error.value.problems[0].code == "stand-in-unreadable"


SECRETS = """
    config:
      app:teams:
        - name: a
          gpus: 2
          token: {secure: AAAA}
      app:key: {secure: AAAA}
"""


def test_a_secret_inside_an_object_leaves_the_rest_of_it(project, tmp_path: Path):
    program = """
        import pulumi, pulumi_kubernetes as k8s
        for team in pulumi.Config().require_object("teams"):
            k8s.core.v1.ConfigMap(team["name"], metadata={"name": team["name"]}, data={
                "gpus": str(team["gpus"]), "token": team["token"],
            })
    """
    project({"__main__.py": program, "Pulumi.dev.yaml": SECRETS})
    result = synth(tmp_path)
    (made,) = [each.manifest for each in result.objects]
    assert made["data"] == {"gpus": "2", "token": UNKNOWN}
    assert UNDECRYPTABLE not in str(result)
    assert [each.name for each in result.not_seen] == ["app:key", "app:teams"]


@pytest.mark.parametrize("kind", ["bool", "float", "int", "object"])
def test_an_encrypted_setting_of_any_type_is_an_unknown_secret(project, tmp_path: Path, kind: str):
    program = f"""
        import pulumi, pulumi_kubernetes as k8s
        config = pulumi.Config()
        values = [config.require_secret_{kind}("key"), config.get_secret_{kind}("key"), config.get_secret_{kind}("none")]
        assert values[2] is None
        k8s.core.v1.ConfigMap("m", metadata={{"name": "m"}}, data={{
            "a": values[0], "b": values[1].apply(lambda value: str(value + 1)),
        }})
    """
    project({"__main__.py": program, "Pulumi.dev.yaml": SECRETS})
    (made,) = [each.manifest for each in synth(tmp_path).objects]
    assert made["data"] == {"a": SECRET, "b": SECRET}


def test_an_encrypted_setting_that_is_read_in_plain_is_told_with_the_way_out(project, tmp_path: Path):
    project(
        {
            "__main__.py": "import pulumi\npulumi.Config().require_int('key')\n",
            "Pulumi.dev.yaml": SECRETS,
        }
    )
    with pytest.raises(ProgramError) as error:
        synth(tmp_path)
    (problem,) = error.value.problems
    assert UNDECRYPTABLE not in str(problem)
    assert "--config app:key=VALUE" in problem.hint
    synth(tmp_path, config={"key": "3"})


def test_a_function_runs_as_the_project_that_the_test_names():
    def program() -> None:
        import pulumi
        import pulumi_kubernetes as k8s

        config = pulumi.Config()
        other = pulumi.Config("other")
        data = {"gpus": config.require("gpus"), "other": other.require("key"), "key": config.require("key")}
        name = f"{pulumi.get_project()}-{pulumi.get_stack()}"
        k8s.core.v1.ConfigMap("m", metadata={"name": name}, data=data)

    config = {"train:gpus": "8", "other:key": "a", "key": "b"}
    made = dra.testing.synth(program, project="train", stack="prod", config=config)
    assert made.object("ConfigMap", "train-prod")["data"] == {"gpus": "8", "other": "a", "key": "b"}
    assert dra.testing.synth(program, config={**config, "gpus": "1"}).program.project == "test"
