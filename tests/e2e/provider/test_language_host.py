"""The Python language host under the real engine: programs, their errors, policy packs, components.

`DRA_INFRA_HOST=vendor` runs these tests on an installed host; where it has other words, they stand beside ours.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.lab import Lab
from tools.pulumi_home import STAND_IN, VENDOR, PulumiHome

pytestmark = pytest.mark.e2e

Offline = Callable[[Mapping[str, str]], Lab]

_TRIES = 5
COMPONENT = """
from typing import TypedDict

import pulumi
from pulumi.provider.experimental import component_provider_host


class GreetingArgs(TypedDict):
    who: pulumi.Input[str]


class Greeting(pulumi.ComponentResource):
    text: pulumi.Output[str]

    def __init__(self, name: str, args: GreetingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("greetings:index:Greeting", name, {}, opts)
        self.text = pulumi.Output.concat("hello ", args["who"])
        self.register_outputs({"text": self.text})


component_provider_host(name="greetings", components=[Greeting])
"""
POLICY = """
from concurrent import futures

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2


class Rules(analyzer_pb2_grpc.AnalyzerServicer):
    def Handshake(self, request, context):
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def ConfigureStack(self, request, context):
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def Configure(self, request, context):
        return empty_pb2.Empty()

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version="1.0.0")

    def GetAnalyzerInfo(self, request, context):
        rule = analyzer_pb2.PolicyInfo(name="rule", enforcementLevel=analyzer_pb2.MANDATORY)
        return analyzer_pb2.AnalyzerInfo(name="rules", version="1.0.0", policies=[rule])

    def Analyze(self, request, context):
        if request.type != "kubernetes:core/v1:ConfigMap":
            return analyzer_pb2.AnalyzeResponse()
        return analyzer_pb2.AnalyzeResponse(diagnostics=[analyzer_pb2.AnalyzeDiagnostic(
            policyName="rule", policyPackName="rules", policyPackVersion="1.0.0", urn=request.urn,
            message=f"{request.name}: this object is forbidden", enforcementLevel=analyzer_pb2.MANDATORY)])

    def AnalyzeStack(self, request, context):
        return analyzer_pb2.AnalyzeResponse()

    def Remediate(self, request, context):
        return analyzer_pb2.RemediateResponse()

    def Cancel(self, request, context):
        return empty_pb2.Empty()


server = grpc.server(futures.ThreadPoolExecutor(4))
analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Rules(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
"""
"""A policy pack in the terms of the protocol; the vendor's library for packs is not needed here."""


@pytest.fixture(scope="session")
def home(cold_home: PulumiHome) -> PulumiHome:
    """Hosts and programs start here as they do for users."""
    return cold_home


@pytest.fixture
def offline(offline_lab: Offline) -> Lab:
    return offline_lab({})


def test_a_program_sees_its_project_stack_configuration_and_folder(offline: Lab) -> None:
    offline.stack.configure("word", "plain")
    offline.stack.configure("token", "hush", "--secret")
    (offline.stack.directory / "beside.py").write_text("VALUE = 'beside'\n")
    offline.write("""
import os
import beside
config = pulumi.Config()
pulumi.export("seen", [pulumi.get_project(), pulumi.get_stack(), pulumi.get_organization(),
                       config.require("word"), beside.VALUE, os.path.basename(os.getcwd()),
                       str(pulumi.runtime.is_dry_run())])
pulumi.export("token", config.require_secret("token"))
""")

    offline.stack.up().check()

    outputs = json.loads(offline.stack.run("stack", "output", "--json", "--stack", "dev").check().stdout)
    assert outputs["seen"] == ["project", "dev", "organization", "plain", "beside", "project", "False"]
    assert outputs["token"] == "[secret]"


def test_an_error_of_the_program_shows_its_own_lines_only(offline: Lab) -> None:
    (offline.stack.directory / "beside.py").write_text("def divide(a, b):\n    return a / b\n")
    offline.write("import beside\nbeside.divide(1, 0)\n")

    preview = offline.stack.preview()

    (error, *_) = preview.errors
    frames = [line.split('"')[1] for line in error.splitlines() if line.strip().startswith("File ")]
    assert preview.exit_code == 1
    assert [Path(frame).name for frame in frames] == ["__main__.py", "beside.py"]
    assert error.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        pytest.param('raise pulumi.RunError("two problems")\n', "two problems", id="RunError"),
        pytest.param("import no_such_module\n", "No module named 'no_such_module'", id="missing module"),
        pytest.param("raise SystemExit(3)\n", "program exited with non-zero exit code: 3", id="exit"),
    ],
)
def test_a_failing_program_fails_the_preview_and_says_why(offline: Lab, program: str, shown: str) -> None:
    offline.write(program)

    preview = offline.stack.preview()

    assert preview.exit_code == 1
    assert shown in "".join(preview.errors)
    assert "runpy" not in preview.text


def test_a_syntax_error_is_told_with_its_line(offline: Lab) -> None:
    offline.write("def broken(:\n")

    preview = offline.stack.preview()

    assert preview.exit_code == 1
    error = "".join(preview.errors)
    assert "def broken(:" in error
    assert "SyntaxError: invalid syntax" in error
    # The vendor's host looks for a frame of the program, and shows all where there is none.
    assert ("runpy" in error) is (offline.home.host == VENDOR)


def test_a_program_may_print_without_harm_to_json(offline: Lab) -> None:
    offline.write('print("chatter")\n')

    assert offline.stack.preview(json=True).check().digest["changeSummary"] == {"create": 1}


def test_a_virtual_environment_that_is_missing_is_named(offline: Lab) -> None:
    project = offline.stack.directory / "Pulumi.yaml"
    settings = yaml.safe_load(project.read_text())
    settings["runtime"] = {"name": "python", "options": {"virtualenv": "no-such-venv"}}
    project.write_text(yaml.safe_dump(settings))

    preview = offline.stack.preview()

    assert preview.exit_code == 1
    words = {
        STAND_IN: "Pulumi.yaml: runtime.options.virtualenv: no-such-venv",
        # It makes the environment, and fails where there is no registry of packages.
        VENDOR: "Creating virtual environment",
    }
    assert words[offline.home.host] in preview.text


def test_a_policy_pack_can_forbid_and_does_not_delay_the_end(offline: Lab, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(POLICY)
    offline.write('config_map("map")\n')

    with_pack = []
    plain = []
    # The engine waits five seconds for a plugin that does not go, each time; another load may come at any time.
    while not plain or (min(with_pack) >= 5 + min(plain) and len(plain) < _TRIES):
        began = time.monotonic()
        preview = offline.stack.preview("--policy-pack", str(pack))
        with_pack.append(time.monotonic() - began)
        assert preview.exit_code == 1
        assert "map: this object is forbidden" in preview.text
        plain.append(_seconds_of(offline))

    assert min(with_pack) < 5 + min(plain)


def test_a_yaml_program_uses_a_python_component(offline: Lab, home: PulumiHome, tmp_path: Path) -> None:
    component = tmp_path / "greetings"
    component.mkdir()
    # Without the option the vendor's host takes the folder venv beside it, which `pulumi install` makes.
    runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
    (component / "PulumiPlugin.yaml").write_text(yaml.safe_dump({"runtime": runtime}))
    (component / "__main__.py").write_text(COMPONENT)
    (offline.stack.directory / "Pulumi.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "project",
                "runtime": "yaml",
                "packages": {"greetings": str(component)},
                "resources": {"it": {"type": "greetings:index:Greeting", "properties": {"who": "world"}}},
                "outputs": {"text": "${it.text}"},
            }
        )
    )

    offline.stack.up().check()

    outputs = json.loads(offline.stack.run("stack", "output", "--json", "--stack", "dev").check().stdout)
    assert outputs == {"text": "hello world"}


def _seconds_of(lab: Lab) -> float:
    began = time.monotonic()
    lab.stack.preview().check()
    return time.monotonic() - began
