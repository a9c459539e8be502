"""A platform as a whole: operator, DRA driver and example driver on a kind of cluster.

It is also checked for what cannot stand beside our plugin on one cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_infra.catalog.platforms import Platform, platforms
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import value_at
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import is_output, shorten, wrong_type
from dra_infra.specs.node_plugin.plan import NodePluginPlan
from dra_infra.specs.platform.compatibility import (
    check_labels,
    check_together,
    follows_for_driver,
    label_missing,
)
from dra_infra.specs.platform.driver_rules import GPUS
from dra_infra.specs.platform.installations import (
    Installation,
    compile_driver,
    compile_example_driver,
    compile_operator,
)
from dra_infra.specs.platform.namespaces import ALWAYS_THERE, ReleaseNamespace
from dra_infra.target import ClusterTarget

_WORDS: Final = {
    "operator": "write gpu_cluster=False for the operator",
    "driver": "write driver=None",
    "example": "write example=None",
}


def check_plugin_with_charts(
    plugin: NodePluginPlan, installed: Mapping[str, Installation], *, driver_root: object = None
) -> Iterator[Problem]:
    """Problems at `node_plugin...`, for charts by the name of their part.

    The kubelet takes one driver of a name on a node, and each of the two deletes the slices of the other.
    Codes: `platform-conflict`, `device-plugin-beside-dra`.

    Args:
        plugin: Ours.
        installed: Charts.
        driver_root: Where platform or operator have NVIDIA's kernel driver on nodes; None where neither says so.
    """
    hardware = plugin.hardware
    for part, installation in installed.items():
        if hardware.driver in _drivers_of(installation):
            yield Problem(
                path="node_plugin.driver" if hardware.is_named else "node_plugin",
                code="platform-conflict",
                message=f"{installation.release.name} brings a driver called {hardware.driver} too, and a node has one of a name",
                hint=f"{_WORDS[part]}, or name another fleet or driver for the plugin",
            )
    operator = installed.get("operator")
    if hardware.back_end == "nvml":
        # Of a platform's nodes the user may know more; an operator does what its chart says.
        is_sure = operator is not None and operator.values.get("driver.enabled") is True
        yield from _check_driver_root(plugin.driver_root, driver_root, is_sure=is_sure)
    if hardware.back_end == "nvml" and operator and operator.values.get("devicePlugin.enabled") is True:
        yield Problem(
            path=f"operator.{operator.values.where('devicePlugin.enabled')}",
            code="device-plugin-beside-dra",
            message="the device plugin and the node plugin both give out the GPUs of a node, and neither sees the other",
            hint="write device_plugin=False for the operator",
        )


def _check_driver_root(told: str | None, known: object, *, is_sure: bool) -> Iterator[Problem]:
    if not isinstance(known, str) or (told is not None and not is_sure):
        return
    looked = told or "/"
    if looked.rstrip("/") != known.rstrip("/"):
        yield Problem(
            path="node_plugin.nvidia_driver_root",
            code="platform-conflict",
            message=f"the kernel driver is in {known} on the nodes, and the node plugin looks for it in {looked}",
            hint=f'write node_plugin={{"back_end": "nvml", "nvidia_driver_root": "{known}"}}',
        )


def _drivers_of(installation: Installation) -> set[str]:
    """Names of the drivers of a chart, as far as they are known."""
    named = installation.values.get("driverName")
    if named and not is_output(named):
        return {str(named)}
    return {driver for driver, _ in installation.classes}


_ARGUMENT: Final = re.compile(r"\b([a-z][a-z_]*)=(True|False|None|\"[^\"]*\"|[0-9.]+)")


def _of_part(name: str, problem: Problem) -> Problem:
    """Return the problem of a part at the platform, whose hint names the arguments of the part as the platform takes them."""
    hint = _ARGUMENT.sub(rf'{name}={{"\1": \2}}', problem.hint)
    return replace(problem, hint=hint).below(name)


PARTS = ("operator", "driver", "example")
"""The charts that a platform is made of, in the order of installation."""


@dataclass(frozen=True)
class PlatformPlan:
    """The parts of a platform that are installed, in order, and problems that stop nothing.

    Args:
        parts: By name, one of `PARTS`.
        node_labels: Labels that GPU nodes need.
        warnings: At arguments of the platform.
        scc: Parts whose pods lack SecurityContextConstraints of OpenShift.
    """

    parts: Mapping[str, Installation]
    node_labels: Mapping[str, Any]
    warnings: tuple[Problem, ...]
    scc: frozenset[str]


def read_part(path: str, value: object) -> tuple[dict[str, Any] | None, list[Problem]]:
    """The arguments of a part: a mapping of them, a version, True for the newest; None and False leave it out."""
    if value is True:
        return {}, []
    hint = f'write {path}={{"version": ...}}, or {path}=True for the newest'
    said = "a mapping of arguments, a version, True or False"
    return read_arguments(path, value, named_by="version", expected=said, hint=hint)


def read_node_plugin(value: object, platform: object) -> tuple[dict[str, Any] | None, list[Problem]]:
    """The arguments of the plugin of a platform: a mapping of them, or its back end; None and False leave it out."""
    profile = platforms().get(platform) if isinstance(platform, str) else None
    hint = 'write node_plugin="sim", or node_plugin={"back_end": "sim", "fleet": ...}'
    said = "a back end, or a mapping of arguments"
    given, problems = read_arguments("node_plugin", value, named_by="back_end", expected=said, hint=hint)
    return {**profile.node_plugin, **given} if profile and given is not None else given, problems


def read_arguments(
    path: str, value: object, *, named_by: str, expected: str, hint: str
) -> tuple[dict[str, Any] | None, list[Problem]]:
    """Arguments that are given as a mapping, or as a text that stands for the one *named_by*; None and False for none."""
    if value is None or value is False:
        return None, []
    if isinstance(value, str):
        return {named_by: value}, []
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items() if each is not None}, []
    return None, [wrong_type(path, value, expected, hint)]


def compile_platform(
    platform: object,
    parts: Mapping[str, Mapping[str, Any] | None],
    *,
    target: ClusterTarget,
    line: str = "",
    gpu_pools: object = None,
    node_plugin: NodePluginPlan | None = None,
) -> PlatformPlan:
    """Everything that is installed on a platform.

    What the user writes nowhere follows from the platform, and for the DRA driver from the operator: where the kernel
    driver is, that the device plugin is off, the label for eviction.

    Args:
        platform: One of `platforms()`.
        parts: Arguments of each of `PARTS` that is wanted.
        target: The cluster.
        line: Release line of the DRA driver where the user names no version.
        gpu_pools: Labels of the nodes of each GPU pool, where they are to be checked.
        node_plugin: Our own plugin beside them.

    Raises:
        InvalidSpecError: With every problem of all parts, and of what they are together.
    """
    problems: list[Problem] = []
    profile = platforms().get(platform) if isinstance(platform, str) else None
    if profile is None:
        problems.append(_unknown_platform(platform))
    found: dict[str, Installation] = {}

    def add(name: str, compile_: Callable[[Mapping[str, Any]], Installation]) -> None:
        arguments = parts.get(name)
        if arguments is None:
            return
        try:
            found[name] = compile_(arguments)
        except InvalidSpecError as error:
            problems.extend(_of_part(name, problem) for problem in error.problems)

    driver = parts.get("driver")
    add(
        "operator",
        lambda given: compile_operator(given, target=target, otherwise=_for_operator(profile, driver)),
    )
    operator = found.get("operator")
    follows = _for_driver(profile, operator, is_wrong=parts.get("operator") is not None and not operator)
    add("driver", lambda given: compile_driver(given, target=target, line=line, otherwise=follows))
    other = profile.example if profile else {}
    add("example", lambda given: compile_example_driver(given, target=target, otherwise=other))
    problems += [_of_part(name, problem) for name, each in found.items() for problem in each.warnings]
    if operator and "driver" in found:
        problems += check_together(operator, found["driver"])
    problems += _check_elsewhere(profile, parts)
    labels = _node_labels(profile, found)
    problems += _check_pools(gpu_pools, profile, found)
    if node_plugin:
        problems += check_plugin_with_charts(
            node_plugin, found, driver_root=follows.get("nvidia_driver_root")
        )
    else:
        problems += _check_any(parts)
    scc = _find_parts_without_scc(profile, found)
    problems += _check_bound(scc, found)
    if any(problem.severity == "error" for problem in problems):
        raise InvalidSpecError(problems)
    return PlatformPlan(_share_namespaces(found), labels, tuple(problems), frozenset(scc))


def _find_parts_without_scc(profile: Platform | None, found: Mapping[str, Installation]) -> set[str]:
    """Return the parts whose charts lack a SecurityContextConstraint that the platform needs."""
    lacks = profile.scc if profile else {}
    return {
        name for name in {*lacks} & {*found} if found[name].release.version in lacks[name] or not lacks[name]
    }


def _check_bound(scc: Set[str], found: Mapping[str, Installation]) -> Iterator[Problem]:
    """Bindings that would let accounts of others be privileged; a namespace that no part makes may be made beside them."""
    made = [each.namespace.name for each in found.values() if each.namespace.labels is not None]
    for part, namespace in ((part, each.namespace.name) for part, each in found.items() if part in scc):
        if namespace not in made:
            path, hint = "create_namespace", "see that nobody else has accounts there"
            if is_shared := namespace in ALWAYS_THERE:
                path, hint = "namespace", "leave it out, and the chart has one of its own"
            yield Problem(
                path=f"{part}.{path}",
                code="namespace-refused",
                message="OpenShift would let every account of the namespace be privileged, and the platform does not make it",
                hint=hint,
                severity="error" if is_shared else "warning",
            )


def _for_driver(profile: Platform | None, operator: Installation | None, *, is_wrong: bool) -> dict[str, Any]:
    """Return what follows for the DRA driver.

    Args:
        profile: The platform.
        operator: The operator; None where none is wanted, or it is wrong.
        is_wrong: Whether it is wrong.
    """
    follows = dict(profile.driver) if profile else {}
    if operator:
        return follows | follows_for_driver(operator)
    # Of an operator that is wrong nothing follows; a second problem because of it would be none.
    return follows | {"gpu_resources_enabled_override": True} if is_wrong else follows


def _for_operator(profile: Platform | None, driver: Mapping[str, Any] | None) -> dict[str, Any]:
    base = dict(profile.operator) if profile else {}
    if profile and profile.kernel_driver == "nodes":
        base["driver"] = False
    is_off = driver and False in (driver.get("gpus"), value_at(driver.get("values"), *GPUS.split(".")))
    if driver is not None and not is_off:
        base["device_plugin"] = False
    return base


def _node_labels(profile: Platform | None, found: Mapping[str, Installation]) -> dict[str, Any]:
    labels: dict[str, Any] = (
        {name: each.value for name, each in profile.node_labels.items()} if profile else {}
    )
    selector = found["driver"].values.get("kubeletPlugin.nodeSelector") if "driver" in found else None
    return labels | (dict(selector) if isinstance(selector, Mapping) else {})


def _check_pools(
    pools: object, profile: Platform | None, found: Mapping[str, Installation]
) -> Iterator[Problem]:
    if pools is None:
        return
    if not isinstance(pools, Mapping) or not all(isinstance(each, Mapping) for each in pools.values()):
        yield wrong_type(
            "gpu_pools", pools, "a mapping of pools to their labels", 'write gpu_pools={"a100": {...}}'
        )
        return
    if "driver" not in found:
        return
    yield from check_labels(found["driver"].values, pools)
    for pool, labels in pools.items():
        for name, each in profile.node_labels.items() if profile else ():
            if labels.get(name) != each.value:
                yield label_missing(str(pool), {name: each.value}, f"the label {each.why}")


def _share_namespaces(found: Mapping[str, Installation]) -> dict[str, Installation]:
    """The parts, of which only the first makes a namespace that several share."""
    made: list[Any] = []
    shared: dict[str, Installation] = {}
    for name, each in found.items():
        here = each.namespace
        if here.name in made:
            each = replace(each, namespace=ReleaseNamespace(here.name, None))  # noqa: PLW2901
        made.append(here.name)
        shared[name] = each
    return shared


def _check_any(parts: Mapping[str, Mapping[str, Any] | None]) -> Iterator[Problem]:
    if all(each is None for each in parts.values()):
        hint = 'write driver=True, operator=True, example=True or node_plugin="sim"'
        yield Problem(path="driver", code="missing-argument", message="nothing is installed", hint=hint)


def _check_elsewhere(
    profile: Platform | None, parts: Mapping[str, Mapping[str, Any] | None]
) -> Iterator[Problem]:
    if profile and profile.operator_elsewhere and parts.get("operator") is not None:
        yield Problem(
            path="operator",
            code="platform-conflict",
            message=f"on {profile.title.partition(',')[0]} {profile.operator_elsewhere}",
            hint="leave operator out, turn the device plugin off in its ClusterPolicy, "
            'and write driver={"gpu_resources_enabled_override": True}',
        )


def _unknown_platform(platform: object) -> Problem:
    known = ", ".join(f'"{name}"' for name in platforms())
    if platform is None:
        message = "the platform is not named"
        hint = f"write platform= one of {known}"
        return Problem(path="platform", code="missing-argument", message=message, hint=hint)
    near = nearest(str(platform).lower(), platforms())
    message = f"{shorten(platform)} is not a platform that is known here"
    hint = f'known are {known}; "kubeadm" has no settings of its own'
    hint = f'did you mean "{near}"? {hint}' if near else hint
    return Problem(path="platform", code="unsupported-value", message=message, hint=hint)
