"""Transforms in `synth`: which are called for a resource, in which order, with what, and what comes of what they give back.

The engine is asked the same in `tests/e2e/components/test_transforms.py`.
"""

from __future__ import annotations

import socket
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dra_infra.errors import Place, ProgramError
from dra_infra.markers import SECRET
from dra_infra.program.synth import synth
from dra_infra.program_objects import UNKNOWN, Program

HEAD = """
import pulumi, pulumi_kubernetes as k8s
from pulumi import ResourceOptions, ResourceTransformResult

def tag(who):
    def transform(args):
        if args.type_.startswith("kubernetes:"):
            metadata = dict(args.props.get("metadata") or {})
            labels = dict(metadata.get("labels") or {})
            labels[who] = str(len(labels))
            return ResourceTransformResult({**args.props, "metadata": {**metadata, "labels": labels}}, args.opts)
    return transform

def config(name, opts=None, **more):
    return k8s.core.v1.ConfigMap(name, metadata={"name": name}, opts=opts, **more)
"""


@pytest.fixture
def run(tmp_path: Path):
    def run(program: str) -> Program:
        (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (tmp_path / "__main__.py").write_text(HEAD + textwrap.dedent(program))
        return synth(tmp_path)

    return run


def manifests(program: Program) -> dict[str, Any]:
    return {each.ref.name: each.manifest for each in program.objects}


def labels(program: Program) -> dict[str, dict[str, str]]:
    return {name: each["metadata"].get("labels", {}) for name, each in manifests(program).items()}


def test_a_resources_own_come_first_then_those_of_its_parents_then_the_stacks(run):
    program = run("""
        config("before")
        pulumi.runtime.register_resource_transform(tag("stack"))
        class Team(pulumi.ComponentResource):
            def __init__(self, name, opts=None):
                super().__init__("team:index:Team", name, None, opts)
        outer = Team("outer", ResourceOptions(transforms=[tag("outer")]))
        inner = Team("inner", ResourceOptions(parent=outer, transforms=[tag("inner"), tag("inner-2")]))
        config("child", ResourceOptions(parent=inner, transforms=[tag("own")]))
        pulumi.runtime.register_resource_transform(tag("stack-2"))
        config("last")
    """)
    assert labels(program) == {
        "before": {},
        "child": {"own": "0", "inner": "1", "inner-2": "2", "outer": "3", "stack": "4"},
        "last": {"stack": "0", "stack-2": "1"},
    }


def test_a_transform_of_a_component_of_ours_reaches_its_object(run):
    program = run("""
        import dra_infra as dra
        dra.GpuClaimTemplate("gpus", device_class="h100", opts=ResourceOptions(transforms=[tag("team")]))
    """)
    (found,) = program.objects
    assert found.manifest["metadata"]["labels"] == {"team": "0"}
    assert str(found.component) == 'GpuClaimTemplate("gpus")'


def test_a_transform_sees_the_type_the_name_and_the_options_and_none_leaves_all_as_it_is(run):
    program = run("""
        seen = []
        def look(args):
            seen.append((args.type_, args.name, args.custom, args.opts.replace_on_changes, args.opts.ignore_changes))
        a = config("a", ResourceOptions(transforms=[look], replace_on_changes=["spec"], ignore_changes=["data.b"]), data={"a": "1"})
        config("seen", data={"a": a.metadata.name.apply(lambda _: repr(seen))})
    """)
    found = manifests(program)
    assert found["a"]["data"] == {"a": "1"}
    assert found["seen"]["data"]["a"] == "[('kubernetes:core/v1:ConfigMap', 'a', True, ['spec'], ['data.b'])]"


def test_options_that_a_transform_gives_count(run):
    program = run("""
        def replace(args):
            return ResourceTransformResult(args.props, ResourceOptions.merge(
                args.opts, ResourceOptions(replace_on_changes=["spec"], delete_before_replace=True)))
        k8s.resource.v1.ResourceClaim("c", metadata={"name": "c"}, spec={}, opts=ResourceOptions(transforms=[replace]))
    """)
    assert [each.replacement for each in program.objects] == ["delete-first"]


def test_outputs_pass_a_transform_known_or_not_secret_or_not(run):
    program = run("""
        made = k8s.core.v1.ConfigMap("made")
        async def more(args):
            data = {**args.props["data"], "more": made.metadata["name"], "hush": pulumi.Output.secret("planted-1")}
            return ResourceTransformResult({**args.props, "data": data}, args.opts)
        config("a", ResourceOptions(transforms=[more]), data={
            "uid": made.metadata["uid"], "token": pulumi.Output.secret("planted-2"), "plain": "x"})
    """)
    data = manifests(program)["a"]["data"]
    assert data == {"uid": UNKNOWN, "token": SECRET, "plain": "x", "more": "made-*", "hush": SECRET}
    assert "planted" not in str(program)


def test_a_secret_takes_nothing_with_it_however_many_transforms_it_passes(run):
    program = run("""
        data = {"plain": "x", "secret": pulumi.Output.secret("hush")}
        config("inner", data=data, opts=ResourceOptions(transforms=[tag("a"), tag("b"), tag("c")]))
    """)
    assert manifests(program)["inner"]["data"] == {"plain": "x", "secret": SECRET}


def test_what_a_transform_raises_is_shown_at_its_line(run):
    with pytest.raises(ProgramError) as error:
        run("""
        def refuse(args):
            raise ValueError("not this one")
        config("a", ResourceOptions(transforms=[refuse]))
        """)
    (problem,) = error.value.problems
    line = HEAD.count("\n") + 3
    assert (problem.code, problem.place) == ("program-raised", Place(file="__main__.py", line=line))


def test_no_port_is_opened_for_them(run, monkeypatch):
    def refuse(*_arguments: object, **_more: object) -> None:
        raise PermissionError("no socket")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    monkeypatch.setattr("grpc.aio.server", refuse)
    program = run("""
        pulumi.runtime.register_resource_transform(tag("stack"))
        config("a", ResourceOptions(transforms=[tag("own")]))
    """)
    assert labels(program) == {"a": {"own": "0", "stack": "1"}}


def test_transforms_of_functions_are_taken_though_no_function_is_called(run):
    program = run("""
        def refuse(args):
            raise ValueError("never called")
        pulumi.runtime.register_invoke_transform(refuse)
        config("a")
        pulumi.runtime.invoke("aws:index:getRegion", {})
    """)
    assert [each.what for each in program.not_seen] == ["function"]


def test_a_run_knows_no_transforms_of_the_run_before(run):
    run('pulumi.runtime.register_resource_transform(tag("stack"))\nconfig("a")\n')
    assert labels(run('config("a")\n')) == {"a": {}}
