from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from dra_infra.errors import Place, ProgramError
from dra_infra.markers import Secret
from dra_infra.program.synth import synth
from dra_infra.program_objects import SECRET, UNKNOWN, Program


@pytest.fixture
def project(tmp_path: Path):
    """Write a project and run it."""

    def run(program: str, *, stack: str = "", **arguments: object) -> Program:
        (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (tmp_path / "__main__.py").write_text(textwrap.dedent(program))
        if stack:
            (tmp_path / "Pulumi.dev.yaml").write_text(textwrap.dedent(stack))
        return synth(tmp_path, **arguments)  # type: ignore[arg-type]

    return run


def problem_of(error: pytest.ExceptionInfo[ProgramError]) -> tuple[str, Place | None]:
    (problem,) = error.value.problems
    return problem.code, problem.place


HEAD = "import pulumi\nimport pulumi_kubernetes as k8s\n"


def test_urns_join_the_types_of_all_parents_but_the_stack(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        class Inner(pulumi.ComponentResource):
            def __init__(self, name, opts):
                super().__init__("acme:index:Inner", name, None, opts)
                k8s.core.v1.ConfigMap("m", opts=pulumi.ResourceOptions(parent=self))

        class Outer(pulumi.ComponentResource):
            def __init__(self, name):
                super().__init__("acme:index:Outer", name)
                Inner("inner", pulumi.ResourceOptions(parent=self))

        Outer("outer")
        """)
    )
    types = "acme:index:Outer$acme:index:Inner$kubernetes:core/v1:ConfigMap"
    assert f"urn:pulumi:dev::app::{types}::m" in program.resources


def test_values_that_only_exist_after_up_are_unknown(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        made = k8s.core.v1.ConfigMap("made", data={"a": "1"})
        k8s.core.v1.ConfigMap("user", metadata={"name": "user"}, data={
            "uid": made.metadata["uid"], "name": made.metadata["name"], "a": made.data["a"],
        })
        """)
    )
    by_name = {each.ref.name: each.manifest for each in program.objects}
    assert by_name["user"]["data"] == {"uid": UNKNOWN, "name": "made-*", "a": "1"}
    assert "made-*" in by_name


def test_objects_without_a_name_are_called_by_their_resource_and_found_by_it(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        made = k8s.core.v1.ConfigMap("made", metadata={"namespace": "ml", "annotations": {"a": "b"}})
        k8s.core.v1.ConfigMap("user", metadata={"name": "user"}, data={
            "lifted": made.metadata.name,
            "applied": made.metadata.apply(lambda metadata: f"http://{metadata.name}.ml:80"),
            "another": "made-0a1b2c3d",
        })
        """)
    )
    by_name = {str(each.ref): each for each in program.objects}
    assert list(by_name) == ["ConfigMap user", "ConfigMap ml/made-*"]
    assert by_name["ConfigMap user"].manifest["data"] == {
        "lifted": "made-*",
        "applied": "http://made-*.ml:80",
        "another": "made-0a1b2c3d",
    }
    metadata = by_name["ConfigMap ml/made-*"].manifest["metadata"]
    assert metadata["annotations"] == {"a": "b", "pulumi.com/autonamed": "true"}
    assert not by_name["ConfigMap ml/made-*"].has_known_name
    assert by_name["ConfigMap user"].has_known_name


def test_an_object_that_the_server_names_is_called_by_its_generate_name(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        made = k8s.batch.v1.Job("job", metadata={"generate_name": "run-"}, spec={"template": {"spec": {}}})
        k8s.core.v1.ConfigMap("user", metadata={"name": "user"}, data={"job": made.metadata.name})
        """)
    )
    found = {str(each.ref): each.manifest for each in program.objects}
    assert found["Job run-*"]["metadata"] == {"generateName": "run-"}
    assert found["ConfigMap user"]["data"] == {"job": UNKNOWN}


def test_unnamed_objects_of_one_name_under_different_parents_are_told_apart(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        for kind in ("a", "b"):
            team = pulumi.ComponentResource(f"team:index:{kind}", "team")
            made = k8s.core.v1.ConfigMap("m", opts=pulumi.ResourceOptions(parent=team))
            k8s.core.v1.ConfigMap(f"user-{kind}", metadata={"name": f"user-{kind}"}, data={"m": made.metadata.name})
        """)
    )
    a, b = (each for each in program.objects if not each.has_known_name)
    assert a.ref.name.startswith("m-*-")
    assert a.ref.name != b.ref.name
    uses = {each.ref.name: each.manifest["data"]["m"] for each in program.objects if each.has_known_name}
    of = {each.urn.split("team:index:")[1][0]: each.ref.name for each in (a, b)}
    assert uses == {"user-a": of["a"], "user-b": of["b"]}


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("mode: verbatim", "made"),
        ("providers: {kubernetes: {mode: verbatim}}", "made"),
        ("providers: {aws: {mode: verbatim}}", "made-*"),
        ("mode: default", "made-*"),
        ("[1]", "made-*"),
    ],
)
def test_the_stacks_setting_for_names_counts(project, setting: str, name: str):
    stack = textwrap.indent(setting, "    ")
    program = project(
        HEAD + 'k8s.core.v1.ConfigMap("made")', stack=f"config:\n  pulumi:autonaming:\n{stack}\n"
    )
    assert [each.ref.name for each in program.objects] == [name]


def test_a_name_that_is_secret_or_not_known_yet_is_not_made_up(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        made = k8s.core.v1.ConfigMap("made")
        k8s.core.v1.ConfigMap("a", metadata={"name": made.metadata["uid"]})
        k8s.core.v1.ConfigMap("b", metadata=pulumi.Output.secret({"namespace": "ml"}))
        k8s.core.v1.ConfigMap("c", metadata={"name": None})
        """)
    )
    assert sorted(each.ref.name for each in program.objects) == [UNKNOWN, UNKNOWN, "c-*", "made-*"]


def test_secrets_are_never_in_the_result(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        config = pulumi.Config()
        k8s.core.v1.ConfigMap("m", metadata={"name": "m"}, data={
            "output": pulumi.Output.secret("planted-1"),
            "setting": config.require_secret("token"),
            "inside": f"Bearer {config.require('token')}",
        })
        """),
        stack="""
        encryptionsalt: v1:x
        config:
          app:token:
            secure: v1:ciphertext
        """,
    )
    (found,) = program.objects
    assert found.manifest["data"] == {
        "output": SECRET,
        "setting": SECRET,
        "inside": Secret("Bearer [secret]"),
    }
    assert "planted" not in str(program)
    assert "ciphertext" not in str(program)
    assert [each.name for each in program.not_seen] == ["app:token"]


def test_configuration_of_the_stack_and_of_the_caller_is_read(project):
    program = project(
        HEAD + 'k8s.core.v1.Namespace("n", metadata={"name": pulumi.Config().require("team")})\n',
        stack="config:\n  app:team: ml\n",
    )
    assert program.objects[0].ref.name == "ml"
    again = project(
        HEAD + 'k8s.core.v1.Namespace("n", metadata={"name": pulumi.Config().require("team")})\n',
        config={"team": "vision"},
    )
    assert again.objects[0].ref.name == "vision"


def test_what_providers_would_say_is_unknown_and_listed(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        found = k8s.core.v1.ConfigMap.get("found", "default/found")
        other = pulumi.StackReference("acme/platform/prod")
        invoked = pulumi.runtime.invoke_output("acme:index:look", {})
        k8s.helm.v4.Chart("chart", chart="./chart")
        k8s.core.v1.ConfigMap("m", metadata={"name": "m"}, data={
            "a": found.data["a"], "b": other.get_output("b"), "c": invoked["c"],
        })
        """)
    )
    data = {each.ref.name: each.manifest.get("data") for each in program.objects}
    assert data["m"] == {"a": UNKNOWN, "b": UNKNOWN, "c": UNKNOWN}
    assert {each.what for each in program.not_seen} == {
        "kubernetes:core/v1:ConfigMap",
        "pulumi:pulumi:StackReference",
        "function",
        "kubernetes:helm.sh/v4:Chart",
    }


def test_an_object_that_is_read_has_the_name_of_its_id(project):
    program = project(
        HEAD
        + textwrap.dedent("""
        import dra_infra as dra
        h100 = k8s.resource.v1.DeviceClass.get("class", "h100")
        found = k8s.core.v1.ConfigMap.get("found", "ml/found")
        unknown = k8s.core.v1.ConfigMap.get("unknown", found.metadata.uid)
        dra.GpuClaimTemplate("gpus", device_class=dra.class_ref(h100.metadata.name), namespace=found.metadata.namespace)
        k8s.core.v1.ConfigMap("m", metadata={"name": "m"}, data={
            "id": found.id, "name": found.metadata["name"], "labels": found.metadata.labels, "data": found.data["a"],
            "unknown": unknown.metadata.name,
        })
        """)
    )
    by_kind = {each.ref.kind: each.manifest for each in program.objects}
    request = by_kind["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"][0]
    assert request["exactly"]["deviceClassName"] == "h100"
    assert by_kind["ResourceClaimTemplate"]["metadata"]["namespace"] == "ml"
    assert by_kind["ResourceClaimTemplate"]["metadata"]["name"].startswith("gpus-")
    assert by_kind["ConfigMap"]["data"] == {
        "id": "ml/found",
        "name": "found",
        "labels": UNKNOWN,
        "data": UNKNOWN,
        "unknown": UNKNOWN,
    }
    assert {(each.name, each.reason) for each in program.not_seen} == {
        ("class", "it is read from a cluster: nothing but its name is known"),
        ("found", "it is read from a cluster: nothing but its name is known"),
        ("unknown", "it is read from a provider or another stack"),
    }


def test_an_error_of_the_program_is_shown_at_the_programs_line(project):
    with pytest.raises(ProgramError) as error:
        project("def build():\n    raise ValueError('boom')\n\nbuild()\n")
    assert problem_of(error) == ("program-raised", Place(file="__main__.py", line=2))
    assert "ValueError: boom" in error.value.problems[0].message


def test_an_error_in_an_apply_is_shown_at_the_programs_line(project):
    with pytest.raises(ProgramError) as error:
        project("import pulumi\npulumi.export('a', pulumi.Output.from_input(1).apply(lambda x: x / 0))\n")
    assert problem_of(error) == ("program-raised", Place(file="__main__.py", line=2))


@pytest.mark.parametrize("raised", ["pulumi.Config().require('model')", "raise pulumi.RunError('no model')"])
def test_what_a_program_raises_is_told_beside_problems_of_its_components(project, raised: str):
    with pytest.raises(ProgramError) as error:
        project(
            f"""\
            import pulumi
            import dra_infra as dra
            dra.GpuClaimTemplate("one", count=0)
            {raised}
            """
        )
    *refused, told = error.value.problems
    assert ("count-below-one", Place(file="__main__.py", line=3)) in [
        (each.code, each.place) for each in refused
    ]
    assert (told.code, told.place) == ("program-raised", Place(file="__main__.py", line=4))
    assert "model" in told.message


def test_a_syntax_error_is_shown_at_its_line(project):
    with pytest.raises(ProgramError) as error:
        project("import pulumi\nx = = 1\n")
    code, place = problem_of(error)
    assert code == "program-raised"
    assert place is not None
    assert (place.file, place.line) == ("__main__.py", 2)


def test_a_program_that_never_ends_is_stopped_at_its_line(project):
    with pytest.raises(ProgramError) as error:
        # Its time is over when it runs, however long the start took.
        project(
            "import signal; signal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True:\n    pass\n", timeout=600
        )
    code, place = problem_of(error)
    assert code == "program-timeout"
    assert place is not None
    assert place.line in (2, 3)


def test_a_program_that_swallows_every_exception_is_stopped_too(project):
    with pytest.raises(ProgramError) as error:
        project("while True:\n    try:\n        pass\n    except Exception:\n        pass\n", timeout=0.5)
    assert problem_of(error)[0] == "program-timeout"


def test_a_program_that_exits_is_told(project):
    with pytest.raises(ProgramError) as error:
        project("import sys\nsys.exit(3)\n")
    assert problem_of(error)[0] == "program-exited"


def test_two_resources_with_one_urn_are_a_problem(project):
    program = project(HEAD + 'for _ in range(2):\n    k8s.core.v1.Namespace("n", metadata={"name": "n"})\n')
    assert [problem.code for problem in program.problems] == ["duplicate-urn"]


def test_what_the_program_prints_stays_off_standard_output(project, capsys):
    project("print('hello')\n")
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello" in err


def test_programs_of_one_process_do_not_see_each_others_modules(tmp_path: Path):
    names = []
    for team in ("ml", "vision"):
        folder = tmp_path / team
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (folder / "settings.py").write_text(f"NAME = {team!r}\n")
        (folder / "__main__.py").write_text(
            HEAD + 'import settings\nk8s.core.v1.Namespace("n", metadata={"name": settings.NAME})\n'
        )
        names.append(synth(folder).objects[0].ref.name)
    assert names == ["ml", "vision"]


def test_no_project_is_said_with_the_folder(tmp_path: Path):
    with pytest.raises(ProgramError) as error:
        synth(tmp_path)
    assert problem_of(error)[0] == "no-project"
    assert "`dra-infra init`" in error.value.problems[0].hint


@pytest.mark.parametrize(
    ("file", "asked", "lines"),
    [
        ("__main__.py", "", ["name: my-gpus", "runtime: python"]),
        ("train.py", "train.py", ["name: my-gpus", "runtime: python", "main: train.py"]),
    ],
)
def test_a_program_alone_is_told_what_its_project_needs(
    tmp_path: Path, file: str, asked: str, lines: list[str]
):
    folder = tmp_path / "my gpus"
    folder.mkdir()
    (folder / file).write_text(HEAD + 'k8s.core.v1.Namespace("n", metadata={"name": "ml"})\n')
    with pytest.raises(ProgramError) as error:
        synth(folder / asked)
    hint = error.value.problems[0].hint
    assert all(f"`{each}`" in hint for each in lines)
    (folder / "Pulumi.yaml").write_text("".join(f"{each}\n" for each in lines))
    assert [each.ref.name for each in synth(folder / asked).objects] == ["ml"]


def test_a_folder_that_does_not_exist_is_not_answered_by_the_one_above(tmp_path: Path):
    (tmp_path / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    with pytest.raises(ProgramError) as error:
        synth(tmp_path / "nope")
    (problem,) = error.value.problems
    assert (problem.code, problem.path) == ("no-project", str(tmp_path / "nope"))
    assert problem.message == "there is no such folder"


@pytest.mark.parametrize(
    "settings",
    [
        "name: app\nruntime: [python]\n",
        "runtime: python\n",
        "- a\n",
        "name: [\n",
        "name: a\nruntime: python\nmain: absent\n",
    ],
)
def test_a_project_file_that_cannot_be_used_is_a_problem(tmp_path: Path, settings: str):
    (tmp_path / "Pulumi.yaml").write_text(settings)
    (tmp_path / "__main__.py").write_text("")
    with pytest.raises(ProgramError) as error:
        synth(tmp_path)
    assert problem_of(error)[0] == "invalid-project"


def test_a_misspelt_stack_is_listed(tmp_path: Path):
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "Pulumi.prod.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text("")
    (found,) = synth(tmp_path, stack="prd").not_seen
    assert (found.what, found.name) == ("configuration of stack", "prd")
    assert "prod" in found.reason
    assert synth(tmp_path, stack="acme/app/prod").not_seen == ()


@pytest.mark.parametrize("hook", ["named", "lambda args: None"])
@pytest.mark.parametrize("dry", [True, False])
def test_a_hook_is_named_and_everything_else_answered(project, hook: str, dry: bool):
    program = project(
        HEAD
        + textwrap.dedent(f"""
        named = pulumi.ResourceHook("drained", lambda args: None, pulumi.ResourceHookOptions(on_dry_run={dry}))
        on_error = pulumi.ErrorHook("again", lambda args: True)
        hooks = pulumi.ResourceHookBinding(before_create=[{hook}], before_delete=[named], on_error=[on_error])
        k8s.core.v1.Namespace("n", metadata={{"name": "n"}}, opts=pulumi.ResourceOptions(hooks=hooks))
        """)
    )
    assert [each.ref.name for each in program.objects] == ["n"]
    notes = {each.name: each.reason for each in program.not_seen if each.what == "hook"}
    assert notes["again"] == "`pulumi up` runs it, and it is not run here"
    assert ("preview" in notes["drained"]) == dry
    assert len(notes) == (2 if hook == "named" else 3)


PROVIDERS = """
cluster = k8s.Provider("cluster")
k8s.core.v1.Namespace("own", metadata={"name": "own"}, opts=pulumi.ResourceOptions(provider=cluster))
k8s.core.v1.Namespace("default", metadata={"name": "default"})
k8s.core.v1.Namespace.get("read", "kube-system")
pulumi.StackReference("acme/platform/prod")
pulumi.runtime.invoke("acme:index:look", {})
"""


@pytest.mark.parametrize(
    ("disabled", "refused"),
    [
        ("[kubernetes]", ["default", "read"]),
        ("['*']", ["acme:index:look", "default", "read"]),
        ("[acme]", ["acme:index:look"]),
        ("[]", []),
        ("''", []),
    ],
)
def test_what_needs_a_default_provider_that_the_stack_disables_is_a_problem(project, disabled: str, refused):
    stack = f"config:\n  pulumi:disable-default-providers: {disabled}\n"
    problems = project(HEAD + PROVIDERS, stack=stack).problems
    assert sorted(each.path for each in problems) == refused
    assert {each.code for each in problems} <= {"default-provider-disabled"}


def test_a_mistyped_name_of_ours_is_told_once_with_the_nearest(project):
    with pytest.raises(ProgramError) as error:
        project("import dra_infra as dra\ndra.GpuClaimTemplat\n")
    (problem,) = error.value.problems
    assert problem.code == "program-raised"
    assert "Did you mean: 'GpuClaimTemplate'?" in problem.message
    assert str(problem).startswith("__main__.py:2: AttributeError: ")


MADE_TWICE = HEAD + (
    "def team(name, **options):\n"
    "    holder = pulumi.ComponentResource('example:ml:' + name, name)\n"
    "    opts = pulumi.ResourceOptions(parent=holder, **options)\n"
    "    k8s.core.v1.ConfigMap('c', metadata={'name': 'c', 'namespace': 'ml'}, opts=opts)\n"
    "team('One')\n"
)


def test_one_object_of_two_resources_is_a_problem(project):
    program = project(MADE_TWICE + "team('Two')\n")
    (problem,) = program.problems
    assert (problem.path, problem.code, problem.severity) == ("ConfigMap ml/c", "duplicate-object", "error")
    assert "example:ml:One > kubernetes:core/v1:ConfigMap c" in problem.message


@pytest.mark.parametrize(
    "more",
    [
        "team('Two', provider=k8s.Provider('other'))\n",
        "k8s.core.v1.ConfigMap('c', metadata={'name': 'c', 'namespace': 'other'})\n",
        "k8s.core.v1.ConfigMapPatch('c', metadata={'name': 'c', 'namespace': 'ml'}, data={'a': 'b'})\n",
        "for name in 'de':\n    k8s.core.v1.ConfigMap(name, metadata={'namespace': 'ml'})\n",
    ],
)
def test_objects_that_are_not_the_same_are_no_problem(project, more: str):
    assert project(MADE_TWICE + more).problems == ()
