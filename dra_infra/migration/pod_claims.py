"""Claims for the containers of a pod that ask device plugins for devices.

Each container gets a claim of its own, as a device plugin gives devices to containers. Init containers use devices of the
containers that start after them, as the kubelet reuses them (pkg/kubelet/cm/devicemanager/manager.go), so that a pod takes no
more devices of its node than before: as many as its containers together, or as the init container that takes most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any, Final

from dra_infra.kubernetes.api import mappings
from dra_infra.migration.device_plugin import RequestedDevices
from dra_infra.migration.needs import ContainerNeeds, Need
from dra_infra.migration.node_selection import DeviceSelection
from dra_infra.migration.outcomes import Remark
from dra_infra.selectors.any_attribute import attribute
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector, cel

_APART: Final = " on these nodes; the others have a release of their own, by kubeletPlugin.nodeSelector"

_LONGEST_ENTRY: Final = 63
"""Characters of the name of an entry of `resourceClaims`, a DNS label."""

NameTemplate = Callable[[str, Mapping[str, Any], bool], str]
"""Names a claim template: takes the entry of the pod that uses it, its claim spec, and whether all pods share one claim instead."""


@dataclass(slots=True)
class GivenClaims:
    """The claims that a pod gets.

    Args:
        entries: For its `resourceClaims`.
        used: By the path of a container: entries for its `resources.claims`.
        remarks: What became of what containers asked for.
    """

    entries: list[Mapping[str, str]] = field(default_factory=list)
    used: dict[str, list[Mapping[str, str]]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Request:
    """Devices that are one request of a claim; `is_used_alone` where an init container uses them and no others of the claim."""

    requested: RequestedDevices
    number: int
    is_used_alone: bool = False


@dataclass(slots=True, eq=False)
class _Claim:
    """A claim that is made for one container, its owner, which uses all of it."""

    owner: ContainerNeeds
    requests: list[_Request]
    entry: str = ""

    def number_of(self, requested: RequestedDevices) -> int:
        """How many devices of a kind it has."""
        return sum(each.number for each in self.requests if each.requested == requested)


_Use = tuple[_Claim, _Request | None]
"""Part of a claim that a container uses: one request, or all of it. Two requests of a claim are never used, for server-side
apply does not merge entries of `resources.claims` that have one name."""


def give_claims(
    spec: Mapping[str, Any],
    served: Sequence[ContainerNeeds],
    selection: DeviceSelection | None,
    name_template: NameTemplate,
    mps_memory: int = 0,
) -> GivenClaims:
    """Gives the containers of a pod claims for what they ask device plugins for.

    Args:
        spec: The pod spec.
        served: Its containers that ask for devices, init containers first.
        selection: Which devices the labels of nodes leave; None where none are asked for.
        name_template: Names the claim templates.
        mps_memory: MiB of a GPU that is shared under MPS.
    """
    lasting = [each for each in served if not each.ends]
    claims = [
        _Claim(each, [_Request(need.requested, need.number) for need in each.needs]) for each in lasting
    ]
    uses: dict[str, list[_Use]] = {each.owner.path: [(each, None)] for each in claims}
    told: dict[str, list[Need]] = {each.path: each.needs for each in lasting}
    done = GivenClaims()
    for init in (each for each in served if each.ends):
        uses[init.path], more = _share(init, claims)
        if lenders := [claim.owner.path for claim, _ in uses[init.path]]:
            message = f"it uses devices of {' and '.join(lenders)}, with which it does not run at once"
            done.remarks.append(Remark(init.path, "changed", "init-container-shares", message))
        if more:
            own = _Claim(init, more)
            claims.append(own)
            uses[init.path].append((own, None))
            told[init.path] = [] if lenders else init.needs
            if lasting:
                done.remarks.append(_takes_more(init, more, served, claims))
    taken = {str(each.get("name")) for each in mappings(spec.get("resourceClaims"))}
    for claim in claims:
        owner = claim.owner
        unnamed = owner.path.replace("C", "-c").replace("s[", "-").rstrip("]")
        name = str(owner.container.get("name") or unnamed)
        is_only = len(served) == 1 or (len(lasting) == 1 and not owner.ends)
        word = _word(claim.requests[0])
        claim.entry = _free(word if is_only else f"{name}-{word}", taken)
        requested = claim.requests[0].requested
        made = _claim_spec(claim.requests, selection)
        if requested.replicas is not None and requested.is_under_mps:
            made["devices"]["config"] = [_mps_config(requested.replicas.number, mps_memory)]
        template = name_template(claim.entry, made, requested.is_under_mps)
        named = "resourceClaimName" if requested.is_under_mps else "resourceClaimTemplateName"
        done.entries.append({"name": claim.entry, named: template})
        done.remarks += [_claim_remark(need, template) for need in told[owner.path]]
    done.used = {path: [_as_written(each) for each in used] for path, used in uses.items()}
    return done


def _share(init: ContainerNeeds, claims: Sequence[_Claim]) -> tuple[list[_Use], list[_Request]]:
    """Uses of claims by an init container whose owners do not run beside it, and the devices that it needs beyond."""
    free = [each for each in claims if each.owner.ends or not _runs_before(each.owner, init)]
    for claim in free:
        if [(each.requested, each.number) for each in claim.requests] == init.shape:
            return [(claim, None)], []
    uses: list[_Use] = []
    more: list[_Request] = []
    for need in init.needs:
        left = need.number
        # One that is large enough first, and of these the smallest.
        for claim in sorted(
            free, key=lambda each: (each.number_of(need.requested) < left, each.number_of(need.requested))
        ):
            if (
                left
                and claim not in (each for each, _ in uses)
                and (use := _take(claim, need.requested, left))
            ):
                uses.append(use)
                left -= claim.number_of(need.requested) if use[1] is None else use[1].number
        if left:
            more.append(_Request(need.requested, left))
    return uses, more


def _take(claim: _Claim, requested: RequestedDevices, number: int) -> _Use | None:
    """All of a claim or one of its requests, with no more than so many devices; divides a request that has more."""
    if {each.requested for each in claim.requests} == {requested} and claim.number_of(requested) <= number:
        return claim, None
    possible = [
        each
        for each in claim.requests
        if each.requested == requested and (each.number <= number or not each.is_used_alone)
    ]
    if not possible:
        return None
    found = max(possible, key=lambda each: (min(each.number, number), -each.number))
    if found.number > number:
        rest = _Request(requested, found.number - number)
        found.number = number
        claim.requests.insert(claim.requests.index(found) + 1, rest)
    found.is_used_alone = True
    return claim, found


def _runs_before(owner: ContainerNeeds, init: ContainerNeeds) -> bool:
    """True for a sidecar that runs already when an init container starts."""
    is_sidecar = owner.path.startswith("initContainers")
    return is_sidecar and _index(owner) < _index(init)


def _index(container: ContainerNeeds) -> int:
    return int(container.path.partition("[")[2].rstrip("]"))


def _takes_more(
    init: ContainerNeeds, more: Sequence[_Request], served: Sequence[ContainerNeeds], claims: Sequence[_Claim]
) -> Remark:
    """Says that an init container has a claim of its own, and what it costs: nothing where the pod was counted with as many before."""
    number = sum(each.number for each in more)
    message = f"it has {'a claim' if number == 1 else f'claims of {number} devices'} of its own for as long as the pod runs"
    if all(
        sum(claim.number_of(requested) for claim in claims) <= _counted(requested, served)
        for requested in {each.requested for each in more}
    ):
        return Remark(
            init.path, "changed", "init-container-takes-more", f"{message}, as its node counted it before"
        )
    hint = "let it ask for as many as one of the containers, whose claim it then uses"
    return Remark(init.path, "lost", "init-container-takes-more", message, hint)


def _counted(requested: RequestedDevices, served: Sequence[ContainerNeeds]) -> int:
    """The devices that the scheduler counted for the pod (PodRequests in k8s.io/component-helpers/resource)."""
    sidecars = most = containers = 0
    for each in served:
        number = sum(need.number for need in each.needs if need.requested == requested)
        if not each.path.startswith("initContainers"):
            containers += number
        elif each.ends:
            most = max(most, sidecars + number)
        else:
            sidecars += number
    return max(most, sidecars + containers)


def _as_written(use: _Use) -> Mapping[str, str]:
    """The entry of `resources.claims`."""
    claim, request = use
    if request is None or len(claim.requests) == 1:
        return {"name": claim.entry}
    return {"name": claim.entry, "request": _names(claim.requests)[claim.requests.index(request)]}


def _free(name: str, taken: set[str]) -> str:
    found = name[:_LONGEST_ENTRY].rstrip("-")
    number = 2
    while found in taken:
        found = f"{name[:55].rstrip('-')}-{number}"
        number = number + 1
    taken.add(found)
    return found


def _word(request: _Request) -> str:
    return "mig" if request.requested.profile else "gpu"


def _names(requests: Sequence[_Request]) -> list[str]:
    return [
        _word(each) if number == 1 else f"{_word(each)}-{number}" for number, each in enumerate(requests, 1)
    ]


def _claim_spec(requests: Sequence[_Request], selection: DeviceSelection | None) -> dict[str, Any]:
    made: list[dict[str, Any]] = []
    for name, each in zip(_names(requests), requests, strict=True):
        exactly: dict[str, Any] = {"deviceClassName": each.requested.class_name}
        if each.number > 1:
            exactly["count"] = each.number
        if selectors := list(_selectors(each.requested, selection)):
            # One, as `select=` of a component makes it.
            exactly["selectors"] = [{"cel": {"expression": reduce(and_, selectors).expression()}}]
        made.append({"name": name, "exactly": exactly})
    return {"devices": {"requests": made}}


def _mps_config(number: int, memory: int) -> Mapping[str, Any]:
    """The limits that the plugin's daemon sets for each of so many replicas (cmd/mps-control-daemon/mps/daemon.go)."""
    limits = {
        "defaultActiveThreadPercentage": 100 // number,
        "defaultPinnedDeviceMemoryLimit": f"{memory // number}Mi",
    }
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "MPS", "mpsConfig": limits},
    }
    return {"requests": ["gpu"], "opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}


def _selectors(requested: RequestedDevices, selection: DeviceSelection | None) -> Iterator[Selector]:
    if requested.profile:
        yield gpu.profile == requested.profile
    is_share = requested.replicas is not None and not requested.is_under_mps
    if requested.replicas is not None and is_share and requested.others - {1}:
        yield gpu.shares == str(requested.replicas.number)
    elif is_share or requested.others:
        # Without it the claim takes a whole GPU where nobody shares them, or a share where others have theirs.
        yield cel(f"{'' if is_share else '!'}device.allowMultipleAllocations")
    if requested.attribute:
        name, value = requested.attribute
        yield attribute(name, "string") == value
    selector = selection.selector if selection and requested.class_name.endswith(selection.vendor) else None
    if selector is not None:
        yield selector


def _claim_remark(need: Need, template: str) -> Remark:
    requested = need.requested
    if requested.replicas is not None and requested.is_under_mps:
        message = (
            f"{requested.resource} is a share under MPS, by the claim {template} of all its pods: they run on one node, and what they "
            f"leave of {requested.replicas.number} shares is nobody's"
        )
        hint = (
            "give the driver featureGates: {MPSSupport: true}, and a Deployment maxSurge: 0, for pods of a rollout share the GPU too; "
            f"an autoscaler that is not among the input has to stop at {requested.replicas.number}"
        )
        return Remark(need.path, "lost", "mps-replicas", message, hint)
    if requested.replicas is not None:
        message = f"{requested.resource} is a share of a GPU, by the claim template {template}"
        hint = f"give the driver featureGates: {{ConsumableShares: true}} and consumableShares: {requested.replicas.number}"
        hint += _APART if requested.others - {0} else ""
        return Remark(need.path, "changed", "replica-to-share", message, hint)
    devices = f"{need.number} device{'' if need.number == 1 else 's'}{f' of {requested.profile}' if requested.profile else ''}"
    message = f"{requested.resource}: {need.number} is {devices} of class {requested.class_name}, by the claim template {template}"
    if requested.class_name == "gpu.intel.com":
        message += "; no other container has it, as with shared-dev-num 1 of Intel's plugin"
    hint = f"give the driver no consumableShares{_APART}" if requested.others else ""
    return Remark(need.path, "changed", "resource-to-claim", message, hint)
