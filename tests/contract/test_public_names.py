from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra
from dra_infra.selectors.attributes import Attribute
from tests.support.components.family import CLAIMS, FAMILY, assert_recorded, make, run

OF_COMPONENTS = Path(__file__).with_name("component_names.txt")
"""What completion offers on an instance, beside what every resource of Pulumi has."""

_ANY = {"exists", "missing", "qualified_name"}
_TEXT = {*_ANY, "contains", "endswith", "matches", "one_of", "startswith"}
_ORDERED = {*_ANY, "between"}
OF_ATTRIBUTES = {
    "gpu.memory": (dra_infra.gpu.memory, _ORDERED),
    "gpu.driver_version": (dra_infra.gpu.driver_version, _ORDERED),
    "gpu.product": (dra_infra.gpu.product, _TEXT),
    "gpu.pci_address": (dra_infra.gpu.pci_address, _TEXT),
    "gpu.numa_node": (dra_infra.gpu.numa_node, {*_ORDERED, "one_of"}),
    "gpu.iommu_fd_enabled": (dra_infra.gpu.iommu_fd_enabled, {*_ANY, "is_false", "is_true"}),
    "attribute": (dra_infra.attribute("a.example/b"), {*_TEXT, "between", "is_false", "is_true"}),
}
SELECTORS = {
    "a comparison": dra_infra.gpu.memory >= "40Gi",
    "a method": dra_infra.gpu.product.contains("H100"),
    "exists": dra_infra.gpu.uuid.exists(),
    "missing": dra_infra.gpu.uuid.missing(),
    "under any name": dra_infra.gpu.pci_address == "0000:65:00.0",
    "and": dra_infra.gpu.uuid.exists() & dra_infra.gpu.profile.missing(),
    "or": dra_infra.gpu.uuid.exists() | dra_infra.gpu.profile.missing(),
    "not": ~dra_infra.gpu.uuid.exists(),
    "driver": dra_infra.driver("gpu.nvidia.com"),
    "cel": dra_infra.cel("true"),
}
"""One of each class."""


def public(value: object, beside: object = None) -> set[str]:
    """What completion offers on a value, without what it offers on another one."""
    return {name for name in {*dir(value)} - {*dir(beside)} if not name.startswith("_")}


def classes_below(base: type) -> set[type]:
    """All classes that derive from *base*."""
    return {each for direct in base.__subclasses__() for each in (direct, *classes_below(direct))}


def seen_in_program(look: Any) -> Any:
    """What a look at resources gives, in a program that registers them."""
    found = []
    program, _ = run(lambda: found.append(look()))
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return found[0]


def printed(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_type_checkers_are_told_the_names_that_there_are():
    path = Path(dra_infra.__file__)
    source = path.read_text()
    homes = sorted(
        # `testing` is the package itself.
        (home.rpartition(".")[0] if home == f"dra_infra.{name}" else home, name)
        for name, home in dra_infra._HOMES.items()
    )
    imports = [f"    from {home} import {name} as {name}\n" for home, name in homes]
    now = re.sub(r"(    from dra_infra\S* import \w+ as \w+\n)+", "".join(imports), source, count=1)
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        path.write_text(now)
    assert path.read_text() == now, "run `make golden`"


@pytest.mark.parametrize("name", dra_infra.__all__)
def test_every_public_name_is_what_its_home_has(name: str):
    module = import_module(dra_infra._HOMES[name])
    assert getattr(dra_infra, name) is (module if name == "testing" else getattr(module, name))


def test_the_public_names_of_components_are_these():
    def look(row: str) -> set[str]:
        return public(make(row), beside=pulumi.ComponentResource("test:index:Plain", "plain"))

    now = {}
    for row, (made, _) in sorted(FAMILY.items()):
        names = " ".join(sorted(seen_in_program(partial(look, row))))
        assert now.setdefault(made.__name__, names) == names
    assert_recorded(OF_COMPONENTS, {name: [f"{name}: {names}"] for name, names in now.items()})


@pytest.mark.parametrize("row", CLAIMS)
@pytest.mark.parametrize("kind", [dict, k8s.core.v1.PodTemplateSpecArgs])
def test_what_attach_gives_has_the_names_of_what_it_was_given(row: str, kind: Any):
    given = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }

    def look() -> tuple[Any, Any]:
        template = kind(**given)
        claim: Any = make(row)
        return template, claim.attach(template)

    template, attached = seen_in_program(look)
    assert type(attached) is kind
    assert public(attached) == public(template)


def test_the_public_names_of_what_a_platform_holds_are_these():
    def look() -> tuple[Any, Any]:
        platform: Any = make("GpuPlatform")
        return platform.installed["operator"], platform.device_classes["gpu.nvidia.com"]

    installed, device_class = seen_in_program(look)
    assert public(installed) == {
        *("device_classes", "line", "namespace", "release_name", "resources", "version"),
    }
    assert public(device_class) == {
        *("configs", "extended_resource_name", "object_name", "resources", "selects"),
    }


@pytest.mark.parametrize("name", OF_ATTRIBUTES)
def test_the_public_names_of_an_attribute_are_these(name: str):
    attribute, names = OF_ATTRIBUTES[name]
    assert public(attribute) == names


@pytest.mark.parametrize("name", SELECTORS)
def test_the_public_names_of_a_selector_are_these(name: str):
    assert public(SELECTORS[name]) == {"expression", "problems"}


def test_every_class_of_selectors_and_attributes_is_looked_at():
    # By name: a dataclass with slots leaves the class that it was made from behind.
    selectors = {type(each).__name__ for each in SELECTORS.values()}
    attributes = {type(each).__name__ for each, _ in OF_ATTRIBUTES.values()}
    assert selectors == {each.__name__ for each in classes_below(dra_infra.Selector)}
    assert attributes == {each.__name__ for each in classes_below(Attribute)} - {"OrderedAttribute"}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="GpuClam"):
        _ = dra_infra.GpuClam


def test_importing_the_package_and_writing_selectors_loads_no_engine():
    code = (
        "import sys, dra_infra as dra\n"
        "(dra.gpu.memory >= '40Gi').expression()\n"
        "print(sorted({'pulumi', 'grpc', 'cel_expr_python', 'click'} & set(sys.modules)))"
    )
    assert printed(code) == "[]"


@pytest.mark.parametrize(
    "first",
    [
        "import dra_infra.kubernetes.cel.check",
        "import dra_infra as dra; dra.gpu",
        "import dra_infra as dra; dra.cel",
    ],
)
def test_cel_is_a_package_and_a_function_in_any_order(first: str):
    code = (
        f"{first}\nimport dra_infra as dra\nimport dra_infra.kubernetes.cel.check as module\n"
        "print(dra.cel('true').expression(), module.check_expression.__name__)"
    )
    assert printed(code) == "true check_expression"


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom dra_infra.cli.app import app\n"
        "result = CliRunner().invoke(app, ['--help'])\nassert result.exit_code == 0\n"
        "print(sorted({'pulumi', 'grpc', 'pydantic', 'yaml', 'jinja2', 'cel_expr_python'} & set(sys.modules)))"
    )
    assert printed(code) == "[]"
