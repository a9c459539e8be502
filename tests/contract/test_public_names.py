from __future__ import annotations

import subprocess
import sys

import pytest

import dra_infra

PUBLIC = {
    "Alternative",
    "ClassRef",
    "ClusterTarget",
    "ComputeDomainChannelConfig",
    "DeviceConfig",
    "DeviceRequest",
    "DistinctAttribute",
    "DraDriver",
    "ExampleDriver",
    "ExampleGpuConfig",
    "GpuClaim",
    "GpuClaimTemplate",
    "GpuConfig",
    "GpuDeviceClass",
    "GpuOperator",
    "GpuPlatform",
    "MatchAttribute",
    "MigDeviceConfig",
    "MigPartition",
    "Mps",
    "NodePlugin",
    "OpaqueConfig",
    "NvlinkGroup",
    "Problem",
    "Selector",
    "SharedGpu",
    "SpacePartitioning",
    "TimeSlicing",
    "Toleration",
    "VfioDeviceConfig",
    "attribute",
    "capacity",
    "cel",
    "class_ref",
    "driver",
    "gpu",
    "pair",
    "testing",
    "validate",
    "version",
    "with_capabilities",
}


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_public_names_are_these():
    assert set(dra_infra.__all__) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_loads(name: str):
    assert getattr(dra_infra, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="GpuClam"):
        _ = dra_infra.GpuClam


def test_importing_the_package_and_writing_selectors_loads_no_engine():
    code = (
        "import sys, dra_infra as dra\n"
        "(dra.gpu.memory >= '40Gi').expression()\n"
        "print(sorted({'pulumi', 'grpc', 'cel_expr_python', 'click'} & set(sys.modules)))"
    )
    assert run(code) == "[]"


@pytest.mark.parametrize(
    "first", ["import dra_infra.cel", "import dra_infra as dra; dra.gpu", "import dra_infra as dra; dra.cel"]
)
def test_cel_is_a_package_and_a_function_in_any_order(first: str):
    code = (
        f"{first}\nimport dra_infra as dra\nimport dra_infra.cel as package\n"
        "print(dra.cel('true').expression(), package.check_expression.__name__)"
    )
    assert run(code) == "true check_expression"


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom dra_infra.cli.app import app\n"
        "result = CliRunner().invoke(app, ['--help'])\nassert result.exit_code == 0\n"
        "print(sorted({'pulumi', 'grpc', 'pydantic', 'yaml', 'jinja2', 'cel_expr_python'} & set(sys.modules)))"
    )
    assert run(code) == "[]"
