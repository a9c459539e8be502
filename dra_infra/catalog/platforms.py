"""Kubernetes platforms, what charts refuse of their values, and which versions go together.

These are facts for installations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import Field

from dra_infra.catalog.charts import Product
from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import read_data

ANY = "*"
"""In a rule: any value that is not empty."""


class NodeLabel(Entry):
    """A label that GPU nodes of a platform need, with the reason."""

    value: str
    why: str


class Platform(Fact):
    """Differences of an installation on a platform.

    Args:
        kernel_driver: Who installs NVIDIA's kernel driver by default.
        operator_elsewhere: Why the operator is not installed by its chart; empty where it is.
        operator: Arguments of `GpuOperator` that stand where the user writes nothing.
        driver: The same of `DraDriver`.
        example: The same of `ExampleDriver`.
        node_plugin: The same of `NodePlugin`.
        scc: Versions of charts, by part, whose accounts are bound to SecurityContextConstraints here; none for all versions.
        node_labels: Labels that GPU nodes need.
    """

    title: str
    kernel_driver: Literal["operator", "nodes"]
    operator_elsewhere: str = ""
    operator: Mapping[str, Any] = {}
    driver: Mapping[str, Any] = {}
    example: Mapping[str, Any] = {}
    node_plugin: Mapping[str, Any] = {}
    scc: Mapping[str, tuple[str, ...]] = {}
    node_labels: Mapping[str, NodeLabel] = {}


class ValueRule(Entry):
    """Values that a chart refuses together: broken when `when` holds and `unless` does not."""

    when: Mapping[str, Any] = Field(min_length=1)
    unless: Mapping[str, Any] = {}
    because: str
    hint: str


class IgnoredValues(Entry):
    """Values below a path that nothing reads unless a condition holds."""

    below: str
    unless: Mapping[str, Any]
    because: str
    hint: str


class ChartRules(Fact):
    """Rules of a product's charts for values, beyond keys and types; paths are those of the values.

    Args:
        arguments: Arguments of the component that installs it, each with the paths that it writes.
    """

    arguments: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, Any]
    choices: Mapping[str, tuple[str, ...]] = {}
    rules: tuple[ValueRule, ...] = ()
    ignored: tuple[IgnoredValues, ...] = ()


class DriverInstallation(Fact):
    """Dependencies of an installation of the NVIDIA DRA driver; see the comments of `platform_matrix.yaml`."""

    kubernetes_documented: str
    renamed: str
    controller_on_control_plane_until: str
    eviction_label: str
    eviction_variable: str
    images: Mapping[str, str]


class GpuClusterNeeds(Fact):
    """The oldest versions with which a GPUCluster works."""

    operator: str
    kubernetes: str
    kernel_driver: str


class ExporterNeeds(Fact):
    """Versions and chart values with which DCGM's exporter names pods and claims; see the comments of `platform_matrix.yaml`."""

    operator: str
    exporter: str
    exporter_comes_with: str
    image: str
    variable: str
    values: Mapping[str, Any]


class OperatorSupport(Fact):
    """The newest Kubernetes that a line of the operator supports."""

    kubernetes_newest: str


class Matrix(Entry):
    """Versions that go together on one cluster."""

    driver: DriverInstallation
    gpu_cluster: GpuClusterNeeds
    dcgm: ExporterNeeds
    operators: Mapping[str, OperatorSupport]


@cache
def platforms() -> Mapping[str, Platform]:
    """Every platform that is known, by name."""
    return {name: Platform.model_validate(entry) for name, entry in read_data("platforms.yaml").items()}


@cache
def chart_rules(product: Product) -> ChartRules:
    """Rules of a product's charts for their values."""
    return ChartRules.model_validate(read_data("chart_rules.yaml")[product])


@cache
def matrix() -> Matrix:
    """Versions that go together on one cluster."""
    return Matrix.model_validate(read_data("platform_matrix.yaml"))
