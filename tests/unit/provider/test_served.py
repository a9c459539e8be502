"""The process that the engine starts: what it serves, and that it loads nothing that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

import dra_infra
from dra_infra.provider.construction import schema_text
from dra_infra.release import VERSION

FOLDER = Path(dra_infra.__file__).parent / "provider"


@pytest.fixture
def served() -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """The provider, started as the host of Python plugins does: by the path of its folder."""
    process = subprocess.Popen(
        [sys.executable, "-u", str(FOLDER), "127.0.0.1:1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        options = [("grpc.max_receive_message_length", 1 << 24)]
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            yield provider_pb2_grpc.ResourceProviderStub(channel)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_folder_serves_the_committed_schema(served: provider_pb2_grpc.ResourceProviderStub):
    schema = served.GetSchema(provider_pb2.GetSchemaRequest()).schema

    assert json.loads(schema) == json.loads(schema_text())
    assert served.GetPluginInfo(empty_pb2.Empty()).version == VERSION == json.loads(schema)["version"]


def test_no_file_of_the_folder_hides_a_module_of_python():
    # The folder comes first on the path of the process.
    names = {each.stem for each in FOLDER.glob("*.py")} - {"__init__", "__main__"}

    assert names.isdisjoint(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "statement", ["import dra_infra", "import dra_infra.components.claims", "import dra_infra.cli.app"]
)
def test_nobody_else_loads_the_package(statement: str):
    code = f"{statement}\nimport sys\nprint([each for each in sys.modules if each.startswith('dra_infra.provider')])"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


def test_the_package_is_constructed_without_pulumis_experimental_modules():
    code = "import sys, dra_infra.provider.construction\nprint('pulumi.provider.experimental.analyzer' in sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "False"
