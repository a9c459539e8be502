"""Reads what containers ask of device plugins by extended resources, and what NVIDIA's plugin means by them.

The name alone does not say it: `nvidia.com/gpu` is a whole GPU, a MIG device where the plugin's strategy is `single`, or a
replica where GPUs are shared. The plugin's configuration or the labels of nodes say which.

Source: api/config/v1 and internal/resource of NVIDIA/k8s-device-plugin 0.20.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import Problem, ProblemsError
from dra_infra.kubernetes.api import Node, mapping, mappings
from dra_infra.migration.outcomes import Remark

WHOLE_GPU: Final = "nvidia.com/gpu"
OLD_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"
"""Its name before Kubernetes 1.10."""

MIG_NAME: Final = r"[0-9]+g\.[0-9]+gb(?:\.me\.all|[.-]me|\.gfx)?"
"""A MIG profile in names of resources and labels, with the suffixes of catalog/data/mig_profiles.yaml."""

_MIG: Final = re.compile(rf"nvidia\.com/mig-({MIG_NAME})\Z")
_MIG_PRODUCT: Final = re.compile(rf"(nvidia\.com/mig-{MIG_NAME})\.product")
_SHARED: Final = ".shared"
_SHARED_PRODUCT: Final = "-SHARED"
_LABEL: Final = "nvidia.com/"

Strategy = Literal["none", "single", "mixed"]
"""How the plugin names MIG devices: not at all, as `nvidia.com/gpu`, or by profile."""

STRATEGIES: Final[tuple[Strategy, ...]] = ("none", "single", "mixed")


Way = Literal["time-slicing", "mps"]
"""How containers share a device: one after the other, or through a daemon that divides memory and threads."""


class Replicas(NamedTuple):
    """How the plugin shares each device of a resource.

    Args:
        way: `time-slicing` or `mps`.
        number: Containers that share a device.
        renamed: Whether the name has `.shared` behind it.
        one_each: Whether a container may have no more than one.
    """

    way: Way
    number: int
    renamed: bool
    one_each: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlugin:
    """How NVIDIA's plugin serves the cluster.

    Args:
        strategy: How it names MIG devices.
        says_strategy: Whether a file says so; without one it may be the plugin's default, or that of an environment.
        profiles: With `single`: the MIG profiles that `nvidia.com/gpu` may be.
        replicas: By resource name as it is without `.shared`.
        unclear: Why nobody can say what `nvidia.com/gpu` is; empty where it is clear.
        apart: Resources of MIG devices that some nodes share in another way than others.
        by_labels: Reads how it serves nodes of these labels, which may differ from others; None where none of them has GPUs.
        is_lacking: Whether the configuration of these nodes is not known, so that no resource is clear.
        numbers: How many containers share a GPU by time slicing, 1 where none do, on any of the nodes; 0 for numbers that nobody knows.
        nodes: The nodes by whose labels all this is known: on those that a pod selects it may be clear.
    """

    strategy: Strategy = "none"
    says_strategy: bool = field(default=False, compare=False)
    profiles: tuple[str, ...] = ()
    replicas: Mapping[str, Replicas] = field(default_factory=dict, hash=False)
    unclear: str = ""
    apart: frozenset[str] = frozenset()
    is_lacking: bool = False
    by_labels: ReadLabels | None = field(default=None, compare=False, repr=False)
    numbers: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    nodes: tuple[Node, ...] = field(default=(), compare=False, repr=False)

    def why_unclear(self, resource: str) -> str:
        """Why nobody can say what a resource is; empty where it is clear."""
        if resource in self.apart:
            return "nodes share it in different ways"
        if self.is_lacking:
            return self.unclear
        if resource == WHOLE_GPU or self.strategy == "mixed" or not self.says_strategy:
            return self.unclear if resource == WHOLE_GPU else ""
        return "the plugin's MIG strategy is not mixed, so it serves no MIG devices by their own names"


ReadLabels = Callable[[Sequence[Mapping[str, Any]]], DevicePlugin | None]


class RequestedDevices(NamedTuple):
    """The devices that one extended resource of a container asks for.

    Args:
        resource: Its name.
        what: A whole GPU, a MIG device, or a replica of one of them.
        class_name: The DeviceClass whose devices these are.
        profile: Of a MIG device, as its attribute says it.
        replicas: Of a replica: how the plugin shares the device.
        attribute: Attribute and value that devices have beyond the class; None where the class is enough.
        others: Of GPUs: `numbers` of the plugin on other nodes.
    """

    resource: str
    what: Literal["gpu", "mig", "replica"]
    class_name: str = "gpu.nvidia.com"
    profile: str = ""
    replicas: Replicas | None = None
    attribute: tuple[str, str] | None = None
    others: frozenset[int] = frozenset()

    @property
    def is_under_mps(self) -> bool:
        """True for a replica whose memory and threads a daemon limits."""
        return self.replicas is not None and self.replicas.way == "mps"


OTHERS: Final[Mapping[str, RequestedDevices]] = {
    resource: RequestedDevices(resource, "gpu", class_name, attribute=attribute)
    for resource, class_name, attribute in (
        ("amd.com/gpu", "gpu.amd.com", ("gpu.amd.com/type", "amdgpu")),
        ("gpu.intel.com/i915", "gpu.intel.com", ("gpu.intel.com/driver", "i915")),
        ("gpu.intel.com/xe", "gpu.intel.com", ("gpu.intel.com/driver", "xe")),
        ("habana.ai/gaudi", "gaudi.intel.com", None),
    )
}
"""Resources of other plugins with a DRA driver. Source: the READMEs of ROCm/k8s-device-plugin, Intel's device plugins for
Kubernetes and HabanaAI's plugin; the drivers are those of catalog/data/drivers.yaml."""


class OtherForm(NamedTuple):
    """A form of devices that no rename of a resource gives.

    Args:
        what: The form, in words.
        hint: What to do.
        even_none: Whether a count of zero says something, too.
    """

    what: str
    hint: str
    even_none: bool = False


_OF_HAMI: Final = (
    r"(?:nvidia|amd)\.com/(?:no)?use-gpu(?:type|-?uuid)|(?:nvidia\.com|volcano\.sh)/vgpu-mode|nvidia\.com/numa-bind"
    r"|hami\.io/(?:(?:gpu|node)-scheduler-policy|device-scoring-weights|vgpu-node)"
)
"""Annotations of pods that HAMi's scheduler reads or writes. Source: pkg/device and pkg/util/types.go of Project-HAMi/HAMi 2.10."""

_OTHER_FORMS: Final[Mapping[str, OtherForm]] = {
    r"amd\.com/[sdtqc]px_nps[0-9]+": OtherForm(
        "a GPU or a part of one by its partition mode; the driver gpu.amd.com says it by attributes",
        "ask for gpu.amd.com with a selector on type, amdgpu or amdgpu-partition, and on partitionProfile",
    ),
    r"gpu\.intel\.com/(?:i915_|xe_)?monitoring": OtherForm(
        "access to all GPUs of a node beside those that use them",
        "write a claim for gpu.intel.com with allocationMode: All and adminAccess: true, in a namespace with the "
        'label resource.kubernetes.io/admin-access: "true"',
    ),
    r"gpu\.intel\.com/(?:memory\.max|millicores|tiles)": OtherForm(
        "a part of a GPU by GPU Aware Scheduling and Intel's plugin up to 0.32; its driver gives a GPU to one claim, with all tiles",
        "leave it out and ask for gpu.intel.com, with a selector on the capacity memory, which is 0 unless xpumd runs; pods share a "
        "GPU where they name one ResourceClaim, and a container takes tiles by ZE_AFFINITY_MASK",
    ),
    r"google\.com/tpu": OtherForm(
        "a number of TPU chips; the driver tpu.google.com gives a claim all chips of a node, and starts no pod with fewer",
        "where a pod has all chips of its nodes, make a template with a request for tpu.google.com and allocationMode: All, and keep a "
        "toleration of google.com/tpu; leave other nodes to the plugin",
    ),
    r"nvidia\.com/[A-Z][A-Za-z0-9_-]*-[0-9]+[ABCQ]": OtherForm(
        "a vGPU of a virtual machine, and no DRA driver that is known here gives vGPUs",
        "leave its nodes to the plugin of KubeVirt",
    ),
    r"nvidia\.com/(?:pgpu|[A-Z][A-Za-z0-9_-]*)": OtherForm(
        "a GPU that is passed through to a virtual machine, which has another class than containers",
        "make a template NAME with a request gpu for vfio.gpu.nvidia.com, with the driver's gate PassthroughSupport; KubeVirt, "
        "from 1.9 on or with its gate GPUsWithDRA, has it by resourceClaims: [{name: gpu, resourceClaimTemplateName: NAME}] in "
        "the spec of the machine, and by claimName: gpu and requestName: gpu in the place of deviceName",
    ),
    r"nvidia\.com/(?:gpumem|gpumem-percentage|gpucores)|volcano\.sh/vgpu-(?:number|memory|cores)": OtherForm(
        "a share of a GPU by HAMi, which its own scheduler counts and its library holds containers to",
        "use a DRA driver of HAMi, or share GPUs by claims, which limit no memory",
        even_none=True,
    ),
    rf"{_OF_HAMI}|nvidia\.com/priority|hami-scheduler": OtherForm(
        "of HAMi, whose scheduler chooses the GPUs of a pod, and for which nvidia.com/gpu may be a share of one",
        "use a DRA driver of HAMi; or leave out what is HAMi's, and choose by claims: dra.gpu.uuid.one_of(...), dra.gpu.product_name",
        even_none=True,
    ),
    "gpu-fraction|gpu-memory": OtherForm(
        "a share of a GPU by the scheduler of KAI or Run:ai, which takes nvidia.com/gpu for it",
        "keep the plugin on its nodes, or share GPUs by claims, which limit no memory",
    ),
}
"""By the pattern of the resource. Sources: the READMEs of ROCm/k8s-device-plugin with the naming strategy mixed, of Intel's device plugins for Kubernetes
with fractional.md of its GPU plugin 0.32 and node_state.go of intel/intel-resource-drivers-for-kubernetes, tag gpu-v0.11.0,
README.md and prepareDevices in kubernetes-sigs/dra-driver-google-tpu, Kata's sandbox device plugin and KubeVirt's permitted host devices, of Project-HAMi/HAMi, and docs/gpu-sharing of
NVIDIA/KAI-Scheduler; pkg/dra/admitter of kubevirt/kubevirt 1.9."""


def find_other_form(resource: str) -> OtherForm | None:
    """Finds the form of devices that a resource stands for where no rename gives it; None for the others."""
    return next((form for pattern, form in _OTHER_FORMS.items() if re.fullmatch(pattern, resource)), None)


def tell_other_form(path: str, resource: str) -> Remark | None:
    """Says of a resource, or a setting of pods, that no rename gives what it stands for; None for the others."""
    form = find_other_form(resource)
    return form and Remark(path, "decide", "other-device-form", f"{resource} is {form.what}", form.hint)


_DEVICE_PREFIXES: Final = (
    "nvidia.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "volcano.sh/vgpu-",
    "aliyun.com/gpu",
    "tencent.com/vcuda-",
    "alpha.kubernetes.io/nvidia-gpu",
    "rdma/",
    "vpc.amazonaws.com/efa",
    "rebellions.ai/",
)
"""Names of resources that a device plugin serves, as far as they are known here."""


def is_device(resource: str) -> bool:
    """True for a resource that some device plugin serves."""
    return resource.startswith(_DEVICE_PREFIXES)


def mig_profile(name: str) -> str:
    """The MIG profile that a name of a resource or label has, as its attribute says it: no name may have its `+`.

    Source: rm.go in internal/rm, which replaces it.
    """
    return name.replace("gb.", "gb+")


def read_resource(resource: str, plugin: DevicePlugin | None) -> RequestedDevices | str:
    """Returns what a resource asks for, or why that cannot be said.

    Args:
        resource: Its name, of those that `is_device`.
        plugin: How NVIDIA's plugin serves the cluster; None where nobody said.
    """
    if resource in OTHERS:
        return OTHERS[resource]
    name = WHOLE_GPU if resource == OLD_GPU else resource
    renamed = name.endswith(_SHARED)
    name = name.removesuffix(_SHARED)
    found = _MIG.match(name)
    if name != WHOLE_GPU and not found:
        return "no claim that is known here gives the same"
    if plugin is None:
        return "the plugin's configuration decides what it is"
    replicas = plugin.replicas.get(name)
    if unclear := plugin.why_unclear(name):
        return unclear
    if found:
        requested = RequestedDevices(resource, "mig", "mig.nvidia.com", mig_profile(found[1]))
    elif plugin.strategy == "single":
        if len(plugin.profiles) != 1:
            return "the plugin's MIG strategy is single, and nothing says which profile it is"
        requested = RequestedDevices(resource, "mig", "mig.nvidia.com", plugin.profiles[0])
    else:
        requested = RequestedDevices(resource, "gpu")
    if renamed and (replicas is None or not replicas.renamed):
        return "the plugin's configuration shares nothing by this name"
    if replicas is not None and (renamed or not replicas.renamed):
        requested = requested._replace(what="replica", replicas=replicas)
    return (
        requested
        if requested.profile
        else requested._replace(others=plugin.numbers - {_number_of(requested.replicas)})
    )


_WAYS: Final[Mapping[str, Way]] = {"timeSlicing": "time-slicing", "mps": "mps"}
_HINT: Final = "give the plugin's configuration, with version: v1 and flags or sharing"


def read_plugin_config(document: Any, *, file: str, strategy: Strategy | None = None) -> DevicePlugin:
    """Reads the configuration file of NVIDIA's plugin.

    Args:
        document: Plain data of the file.
        file: Its name, for problems.
        strategy: That of the plugin's environment, which counts before the file's (NewConfig in api/config/v1/config.go).

    Raises:
        ProblemsError: `plugin-config-malformed`.
    """
    if not isinstance(document, Mapping) or document.get("version") != "v1":
        raise malformed(file, "is no configuration of NVIDIA's device plugin: version is not v1")
    flags, sharing = mapping(document.get("flags")), mapping(document.get("sharing"))
    of_file = read_strategy(flags.get("migStrategy"), f"{file}.flags.migStrategy")
    said = strategy or of_file
    replicas: dict[str, Replicas] = {}
    # With both the plugin goes by MPS alone (ReplicatedResources in api/config/v1/sharing.go).
    key = "timeSlicing" if sharing.get("mps") is None else "mps"
    settings = mapping(sharing.get(key))
    # The default differs: config.go preserves what MPS did before there was the setting.
    one_each = settings.get("failRequestsGreaterThanOne", key == "mps") is True
    for index, each in enumerate(mappings(settings.get("resources"))):
        name, number = each.get("name"), each.get("replicas")
        if not isinstance(name, str) or type(number) is not int or number < 1:
            path = f"{file}.sharing.{key}.resources[{index}]"
            raise malformed(path, "has no name or no number of replicas")
        if number > 1:
            full = name if "/" in name else f"{_LABEL}{name}"
            is_renamed = settings.get("renameByDefault") is True
            replicas[full] = Replicas(_WAYS[key], number, is_renamed, one_each)
    numbers = frozenset({_number_of(replicas.get(WHOLE_GPU))})
    is_said = said is not None
    return DevicePlugin(strategy=said or "none", says_strategy=is_said, replicas=replicas, numbers=numbers)


def _number_of(replicas: Replicas | None) -> int:
    """How many containers share a device by time slicing; 1 for devices that none share so."""
    return replicas.number if replicas is not None and replicas.way == "time-slicing" else 1


def is_plugin_config(document: Any) -> bool:
    """True for plain data that is a configuration of the plugin and says anything."""
    says = (isinstance(mapping(document).get(each), Mapping) for each in ("flags", "sharing"))
    return mapping(document).get("version") == "v1" and any(says)


def holds_plugin_config(text: str) -> bool:
    """True for a text that is such a configuration, which names resources and asks for none."""
    with suppress(ProblemsError):
        return "version" in text and all(map(is_plugin_config, read_manifests(text, file="")))
    return False


def read_strategy(written: Any, path: str) -> Strategy | None:
    """Reads a MIG strategy, which is at *path*; None where none is written.

    Raises:
        ProblemsError: `plugin-config-malformed`.
    """
    found = next((each for each in STRATEGIES if each == written), None)
    if found is None and written is not None:
        raise malformed(path, f"{str(written)[:80]!r} is none of {', '.join(STRATEGIES)}")
    return found


def malformed(path: str, message: str, hint: str = _HINT) -> ProblemsError:
    """The refusal of a file that is no configuration, or of which nobody can say what it means."""
    return ProblemsError([Problem(path=path, code="plugin-config-malformed", message=message, hint=hint)])


def read_node_labels(nodes: Iterable[Mapping[str, Any]]) -> DevicePlugin | None:
    """How the plugin serves the cluster by the labels that GPU feature discovery gave nodes; None where no node has any.

    Where nodes differ, `nvidia.com/gpu` is one thing on some of them and another on others, and is not clear.

    Args:
        nodes: The labels of each node.

    Source: internal/lm of NVIDIA/k8s-device-plugin.
    """
    ways = {way for labels in nodes if (way := _read_way(labels)) is not None}
    if not ways:
        return None
    is_mixed = any(each.is_mixed for each in ways)
    of_parts: dict[str, set[Replicas | None]] = {}
    for name, how in (each for way in ways for each in way.parts):
        of_parts.setdefault(name, set()).add(how)
    apart = frozenset(name for name, found in of_parts.items() if len(found) > 1)
    shared = {name: how for name, (how, *_) in of_parts.items() if how is not None and name not in apart}
    served = {(each.profile, each.replicas) for each in ways}
    told = ", ".join(sorted(tell_device(*each) for each in served))
    profile, replicas = served.pop() if len(served) == 1 else ("", None)
    several: Strategy = "mixed" if is_mixed else "none"
    return DevicePlugin(
        strategy="single" if profile else several,
        profiles=(profile,) if profile else (),
        replicas=shared if replicas is None else {WHOLE_GPU: replicas, **shared},
        unclear=f"nodes serve it in different ways: {told}" if served else "",
        apart=apart,
        numbers=frozenset(1 if each.profile else _number_of(each.replicas) for each in ways),
    )


class _Way(NamedTuple):
    """How one node serves `nvidia.com/gpu`: as a MIG device of a profile, or as replicas; and with `mixed` each MIG resource."""

    profile: str
    replicas: Replicas | None
    is_mixed: bool
    parts: tuple[tuple[str, Replicas | None], ...]


def _read_way(labels: Mapping[str, Any]) -> _Way | None:
    product = str(labels.get(f"{_LABEL}gpu.product") or "")
    # With this product GPU feature discovery says that the node has no MIG devices of one profile, and serves none.
    if not product or product.endswith("-MIG-INVALID"):
        return None
    strategy = labels.get(f"{_LABEL}mig.strategy")
    _, _, profile = product.partition("-MIG-")
    profile = mig_profile(profile.removesuffix(_SHARED_PRODUCT))
    parts = sorted(found[1] for label in labels if (found := _MIG_PRODUCT.fullmatch(label)))
    of_parts = tuple((each, _read_replicas(labels, each)) for each in parts)
    return _Way(profile, _read_replicas(labels, WHOLE_GPU), strategy == "mixed", of_parts)


def _read_replicas(labels: Mapping[str, Any], resource: str) -> Replicas | None:
    """The replicas of each device of a resource on a node; None where it shares none."""
    # Without the label it is a plugin from before MPS.
    way = labels.get(f"{resource}.sharing-strategy", "time-slicing")
    number = str(labels.get(f"{resource}.replicas") or "")
    if way not in ("time-slicing", "mps") or not re.fullmatch("[0-9]{1,4}", number, re.ASCII):
        return None
    # A product without -SHARED is that of a resource with another name.
    renamed = not str(labels.get(f"{resource}.product")).endswith(_SHARED_PRODUCT)
    found = Replicas("mps" if way == "mps" else "time-slicing", int(number), renamed, way == "mps")
    return found if found.number > 1 else None


def tell_device(profile: str, replicas: Replicas | None) -> str:
    """Words for what a node serves as `nvidia.com/gpu`."""
    device = f"a MIG device {profile}" if profile else "a whole GPU"
    return f"one of {replicas.number} replicas of {device}" if replicas else device
