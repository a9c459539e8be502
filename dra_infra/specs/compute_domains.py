"""ComputeDomains of the NVIDIA DRA driver: nodes of a rack whose GPUs share memory over NVLink.

A ComputeDomain names a claim template that the driver's controller makes beside it; a pod that has a claim from it
gets channel 0 of the node, and the node joins the domain. Upstream:
`api/nvidia.com/resource/v1beta1/computedomain.go` and `cmd/compute-domain-controller` of the NVIDIA DRA driver,
v25.3.2 to v0.4.1, and main at 95932046 before v0.5.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.device_configs import lines_with
from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import UNKNOWN, is_placeholder, value_at
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import wrong_type
from dra_infra.specs.claims import compile_claim
from dra_infra.specs.device_configs import ComputeDomainChannelConfig
from dra_infra.specs.requests import DeviceRequest

API_VERSION: Final = "resource.nvidia.com/v1beta1"
KIND: Final = "ComputeDomain"

CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
"""Label of nodes whose GPUs NVLink joins across nodes: cluster UUID and clique id; absent where there is no fabric."""

CHANNEL_REQUEST: Final = "channel"
"""Name of the one request in the template that the controller makes."""

DRIVER: Final = "compute-domain.nvidia.com"
_CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"

_DNS_NAMES: Final = "IMEXDaemonsWithDNSNames"
_HOST_MANAGED: Final = "HostManagedIMEXDaemon"
_ALLOCATION_MODES: Final = ("Single", "All")
_IMEX_MODES: Final = ("driverManaged", "hostManaged")


def compile_compute_domain(
    channel_template: str,
    *,
    nodes: int,
    line: str,
    gates: Mapping[str, bool] | None = None,
    allocation_mode: str | None = None,
) -> dict[str, Any]:
    """The spec of a ComputeDomain.

    Args:
        channel_template: Name of the claim template that the controller makes.
        nodes: How many nodes will join. Written where the release needs it: up to 25.12, and where the gate
            IMEXDaemonsWithDNSNames is off, for pods then wait until so many nodes have joined; else 0.
        line: Release line of the driver.
        gates: Feature gates that the driver is given; None where they are not known.
        allocation_mode: `Single` channel or `All`; None leaves it to the server, whose default is `Single`.
    """
    waits = not gate_states(line, gates or {}).get(_DNS_NAMES, False)
    channel: dict[str, Any] = {"resourceClaimTemplate": {"name": channel_template}}
    if allocation_mode is not None:
        channel["allocationMode"] = allocation_mode
    return {"numNodes": nodes if requires_nodes(line) or waits else 0, "channel": channel}


def requires_nodes(line: str) -> bool:
    """The CRD of a release line requires `numNodes`; from 0.4 on it is deprecated, and 0 by default."""
    return drivers()[DRIVER].has(line, until="25.12")


def check_options(
    allocation_mode: object, imex_mode: object, *, line: str, gates: Mapping[str, bool] | None = None
) -> list[Problem]:
    """Checks that the release and its gates have these options: `unsupported-value`, `compute-domain-option`.

    Args:
        allocation_mode: `Single`, `All`, or None.
        imex_mode: The chart's `resources.computeDomains.imex.mode`: `driverManaged`, `hostManaged`, or None.
        line: Release line of the driver.
        gates: Feature gates that the driver is given; None where they are not known: nothing is said of them.
    """
    problems = [
        *_check_choice("allocation_mode", allocation_mode, _ALLOCATION_MODES),
        *_check_choice("imex_mode", imex_mode, _IMEX_MODES),
    ]
    if problems:
        return problems
    if allocation_mode is not None:
        problems += check_allocation_mode("allocation_mode", line)
    if imex_mode == "hostManaged":
        problems += _check_host_managed(allocation_mode, line, gates)
    return problems


def check_allocation_mode(path: str, line: str) -> Iterator[Problem]:
    """Checks that a release line has the field `allocationMode` of ComputeDomains: `compute-domain-option`."""
    since = lines_with(DRIVER, "ComputeDomainChannelConfig", "allocationMode")
    if line not in since:
        message = f"a ComputeDomain of driver {line} has no allocationMode, and always a single channel"
        yield _option(path, message, f"leave it out, or use driver {since[0]} or newer")


def _check_host_managed(
    allocation_mode: object, line: str, gates: Mapping[str, bool] | None
) -> Iterator[Problem]:
    if _HOST_MANAGED not in gates_of(line):
        first = next(each for each in drivers()[DRIVER].by_line if _HOST_MANAGED in gates_of(each))
        message = f"driver {line} always runs the IMEX daemons itself"
        yield _option("imex_mode", message, f"leave it out, or use driver {first} or newer")
    elif gates is not None and not gate_states(line, gates)[_HOST_MANAGED]:
        message = f"driver {line} does not start with hostManaged and without its gate {_HOST_MANAGED}"
        yield _option(
            "imex_mode", message, f'write driver_gates={{"{_HOST_MANAGED}": True}}, as in the chart'
        )
    if allocation_mode == "All":
        message = "where the host runs the IMEX daemon, every ComputeDomain has the one channel 0: All is not to be had"
        yield _option("allocation_mode", message, "leave allocation_mode out")


def channel_template(compute_domain: Mapping[str, Any]) -> dict[str, Any] | None:
    """The ResourceClaimTemplate that the controller makes for a ComputeDomain; None where that names none.

    It stands in no program. `UNKNOWN` stands for the UID of the ComputeDomain, by which the driver finds it.
    """
    name = _template_name(compute_domain)
    if name is None:
        return None
    is_all = compute_domain["spec"]["channel"].get("allocationMode") == "All"
    config = ComputeDomainChannelConfig(
        domain_id=UNKNOWN, allocation_mode="All" if is_all else "Single", requests=[CHANNEL_REQUEST]
    )
    spec = compile_claim([DeviceRequest(CHANNEL_REQUEST, device_class=_CHANNEL_CLASS)], configs=[config])
    namespace = value_at(compute_domain, "metadata", "namespace")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": spec.to_manifest()},
    }


def check_template_names(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Problem]]:
    """ComputeDomains whose claim template somebody else makes too: `channel-template-taken`.

    The controller then fails to create it and tries again for ever, and pods get claims without a channel.

    Returns:
        Pairs of an object's position and a problem whose path begins inside the object.
    """
    own = {
        (_namespace(each), str(value_at(each, "metadata", "name")))
        for each in objects
        if each.get("kind") == "ResourceClaimTemplate"
    }
    for index, each in enumerate(objects):
        name = _template_name(each)
        if name is not None and (_namespace(each), name) in own:
            path = "spec.channel.resourceClaimTemplate.name"
            message = (
                f"ResourceClaimTemplate {name!r} is in the input too, and the driver's controller makes it"
            )
            hint = "delete that template, or give one of the two another name"
            yield index, Problem(path=path, code="channel-template-taken", message=message, hint=hint)


def is_compute_domain(manifest: Mapping[str, Any]) -> bool:
    """True for a ComputeDomain."""
    return manifest.get("kind") == KIND and manifest.get("apiVersion") == API_VERSION


def _template_name(manifest: Mapping[str, Any]) -> str | None:
    """The template that a ComputeDomain names; None for other objects, and where it is not told."""
    if not is_compute_domain(manifest):
        return None
    value = value_at(manifest, "spec", "channel", "resourceClaimTemplate", "name")
    return value if isinstance(value, str) and value and not is_placeholder(value) else None


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(value_at(manifest, "metadata", "namespace") or "default")


def _check_choice(path: str, value: object, choices: Collection[str]) -> Iterator[Problem]:
    if value is not None and not isinstance(value, str):
        yield wrong_type(path, value, f"one of {', '.join(choices)}", "give a plain string")
    elif value is not None and value not in choices:
        spelled = {each.lower(): each for each in choices}
        meant = spelled.get(nearest(value.lower(), spelled))
        message = f"{value[:80]!r} is none of {', '.join(choices)}"
        hint = f"did you mean {meant!r}?" if meant else f'write {path}="{next(iter(choices))}"'
        yield Problem(path=path, code="unsupported-value", message=message, hint=hint)


def _option(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="compute-domain-option", message=message, hint=hint)
