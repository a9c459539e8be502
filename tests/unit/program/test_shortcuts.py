"""The SDK's own functions and their shortcuts must give the same programs, and only runs in process take them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from pulumi.runtime import Settings, configure, resource

from dra_infra.program import surroundings
from dra_infra.program.monitor import Engine
from dra_infra.program.surroundings import new_loop
from dra_infra.program.synth import synth

PROGRAM = """
import asyncio
import pulumi
import pulumi_kubernetes as k8s
import dra_infra as dra
from parts import Pair

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
dra.GpuClaimTemplate("trainer", device_class=h100, count=4)
Pair("pair", aliases=[pulumi.Alias(name="couple")])
k8s.core.v1.ConfigMap("m", metadata={"name": "m"}, data={"urn": h100.urn})
pulumi.CustomResource("kubernetes:v1:ConfigMap", "bare", {"metadata": {"name": "bare"}})

async def build():
    return {"thread": await asyncio.get_running_loop().run_in_executor(None, lambda: "other")}

pulumi.run(build)
"""

PARTS = """
import pulumi
import pulumi_kubernetes as k8s

class Pair(pulumi.ComponentResource):
    def __init__(self, name, **options):
        super().__init__("acme:index:Pair", name, None, pulumi.ResourceOptions(**options))
        for side in ("left", "right"):
            make(side, self)

def make(name, parent):
    k8s.core.v1.ConfigMap(name, metadata={"name": name}, opts=pulumi.ResourceOptions(parent=parent))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    (tmp_path / "parts.py").write_text(PARTS)
    return tmp_path


@pytest.fixture
def the_sdks_own_way(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def take() -> None:
        # Replaced functions ask this variable, so a run that never sets it goes the SDK's way.
        monkeypatch.setattr(surroundings, "_in_run", SimpleNamespace(get=bool, set=bool, reset=bool))
        monkeypatch.setattr("dra_infra.program.synth.new_loop", asyncio.new_event_loop)

    return take


def test_a_run_gives_the_same_program_as_the_sdks_own_way(
    project: Path, the_sdks_own_way: Callable[[], None]
) -> None:
    short = synth(project)
    the_sdks_own_way()
    assert synth(project) == short
    assert {str(each.place) for each in short.objects} == {
        "__main__.py:8",
        "__main__.py:9",
        "__main__.py:11",
        "parts.py:12",
        "None",
    }


@pytest.mark.parametrize("parent", ["", "urn:pulumi:dev::app::pulumi:pulumi:Stack::app-dev", "odd"])
def test_urns_are_those_of_the_sdk(parent: str) -> None:
    async def both() -> tuple[str | None, str | None]:
        own = await pulumi.create_urn("name", "acme:index:Thing", parent).future()
        with surroundings.sdk_shortcuts():
            return own, await pulumi.create_urn("name", "acme:index:Thing", parent).future()

    own, short = asyncio.run(both())
    assert own is not None
    assert short == own


def test_urns_of_values_that_come_later_are_left_to_the_sdk() -> None:
    async def made() -> str | None:
        with surroundings.sdk_shortcuts():
            name = pulumi.Output.from_input("late")
            return await pulumi.create_urn(name, "t:i:T", "urn:pulumi:d::a::p:p:S::s").future()

    assert asyncio.run(made()) == "urn:pulumi:d::a::p:p:S$t:i:T::late"


def test_the_installed_sdk_has_what_is_replaced() -> None:
    with surroundings.sdk_shortcuts():
        pass
    replaced = [resource._get_stack_trace, resource.create_urn, pulumi.log.debug]
    assert [inspect.unwrap(each) is not each for each in replaced] == [True, True, True]


class Resource:
    def __init__(self) -> None:
        self.frames = list(resource._get_stack_trace().frames)


class CustomResource(Resource):
    def __init__(self) -> None:
        super().__init__()


class Bucket(CustomResource):
    def __init__(self) -> None:
        super().__init__()


def test_only_the_run_itself_and_no_other_thread_takes_shortcuts() -> None:
    made: list[Bucket] = []
    with surroundings.sdk_shortcuts():
        made.append(Bucket())
        thread = threading.Thread(target=lambda: made.append(Bucket()))
        thread.start()
        thread.join()
    made.append(Bucket())
    within, elsewhere, after = (len(each.frames) for each in made)
    # The innermost one alone: a file beside the project is the user's own too.
    assert within == 1
    assert elsewhere > 1
    assert after > 1


@pytest.mark.parametrize("function", [None, lambda extra: None])
def test_a_function_that_is_missing_or_takes_other_parameters_is_left_alone(function: Any) -> None:
    module = SimpleNamespace(**({"f": function} if function else {}))
    surroundings._replace(module, "f", (), lambda _original: lambda: None)
    assert getattr(module, "f", None) is function


def test_a_newer_sdk_with_another_function_gives_the_same_places(project: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from pulumi.runtime import resource
        own = resource._get_stack_trace
        def renamed(depth=0):
            return own()
        resource._get_stack_trace = renamed
        from dra_infra.program.synth import synth
        found = synth(sys.argv[1])
        assert resource._get_stack_trace is renamed
        print(*sorted(str(each.place) for each in found.objects))
    """)
    run = subprocess.run(
        [sys.executable, "-c", program, str(project)], capture_output=True, text=True, check=False
    )
    assert run.stdout.split() == sorted(str(each.place) for each in synth(project).objects), run.stderr


def test_debug_messages_of_the_sdk_are_not_even_made() -> None:
    taken: list[str] = []

    class Listening(Engine):
        def Log(self, request: Any) -> Any:  # noqa: N802
            taken.append(request.message)

    def log() -> None:
        configure(Settings("project", "stack", engine=Listening()))
        with surroundings.sdk_shortcuts():
            pulumi.log.debug("dropped")
            pulumi.log.info("kept")
        pulumi.log.debug("outside")

    contextvars.copy_context().run(log)
    assert taken == ["kept", "outside"]


def test_calls_of_the_sdk_run_at_once_and_those_of_the_program_in_a_thread() -> None:
    loop = new_loop()
    try:

        def of_sdk() -> threading.Thread:
            return threading.current_thread()

        of_sdk.__module__ = "pulumi.runtime._context"
        assert loop.run_in_executor(None, of_sdk).done()
        assert loop.run_until_complete(loop.run_in_executor(None, of_sdk)) is threading.current_thread()
        in_thread = loop.run_until_complete(loop.run_in_executor(None, threading.current_thread))
        assert in_thread is not threading.current_thread()
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def test_an_error_two_tasks_wait_for_keeps_its_line(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(
        "import pulumi\nfailing = pulumi.Output.from_input(1).apply(lambda x: x / 0)\n"
        "pulumi.export('a', failing)\npulumi.export('b', failing)\n"
    )
    with pytest.raises(Exception, match=r"__main__\.py:2"):
        synth(tmp_path)
