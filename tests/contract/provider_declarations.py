"""The generated module of the package for all languages: enums, objects, and arguments and outputs of each component.

Signatures and docstrings of the components are the source. `TYPES` says what stands for each of their types in Pulumi's schema, and
`MEANINGS` what is said instead of a docstring that is about Python.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import dra_infra as dra
from dra_infra.provider.selector_fields import FIELDS
from tests.contract.component_reference import (
    CLAIMS,
    COMPONENTS,
    annotations_of,
    arguments_of,
    outputs_of,
    summary_of,
)

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = ROOT / "dra_infra" / "provider" / "declarations.py"


class Property(NamedTuple):
    """One property of an object: its name in Python, its type, and what it is."""

    name: str
    type: str
    meaning: str
    is_required: bool = False


class Row(NamedTuple):
    """What stands for a type of Python: a type of the schema, and properties that it has beside the one of the argument's name."""

    type: str
    beside: tuple[Property, ...] = ()


_ALL_DEVICES: Final = Property(
    "all_devices", "bool", "`true` takes every device of a node that matches, in place of `count`."
)
_MATCH: Final = Property(
    "match", "Match", "What each device must be, by fields. Beside `select`, devices must pass both."
)
_PROFILES: Final = (
    Property(
        "profile_counts",
        "dict[str, int]",
        'In place of `profiles`: number of devices by profile, `{"1g.10gb": 7}`.',
    ),
    Property(
        "named_profiles",
        "dict[str, str]",
        'In place of `profiles`: profiles by the name of their request, `{"train": "3g.40gb", "infer": "1g.10gb"}`.',
    ),
)
_WITHOUT_DRIVER: Final = Property(
    "without_driver", "bool", "`true` installs no NVIDIA DRA driver, which is installed otherwise."
)

TYPES: Final[Mapping[str, Row]] = {
    **{name: Row(name) for name in ("str", "int", "float", "bool", "Any")},
    "pulumi.Input[str]": Row("pulumi.Input[str]"),
    "pulumi.Input[int]": Row("pulumi.Input[int]"),
    "pulumi.Input[str] | int": Row("pulumi.Input[str]"),
    "str | Sequence[str]": Row("list[str]"),
    "ClassArgument": Row("pulumi.Input[str]"),
    "NamedClass | str": Row("pulumi.Input[str]"),
    "Count": Row("pulumi.Input[int]", (_ALL_DEVICES,)),
    "Selector": Row("str", (_MATCH,)),
    "Constraint": Row("Constraint"),
    "DeviceConfig": Row("DeviceConfig"),
    "TimeSlicing | Mps": Row("Sharing"),
    "Mps": Row("Sharing"),
    "TimeSlicing | SpacePartitioning": Row("Sharing"),
    # As an input: Go's SDK does not compile with a plain mapping of it.
    "Mapping[str, CounterSource | CapacitySource]": Row("pulumi.Input[dict[str, QueueSource]]"),
    "PodSecurity | Level": Row("PodSecurity"),
    "Template": Row("TenantTemplate"),
    "GpuRoles | str": Row("str"),
    "Attribute | str": Row("str"),
    "Profiles": Row("list[str]", _PROFILES),
    "Mapping[str, str] | Mapping[int, str]": Row("dict[str, str]"),
    "NodeLabels": Row("dict[str, pulumi.Input[str]]"),
    "PodTolerations": Row("list[dict[str, Any]]"),
    "DraDriverPart | str | bool": Row("DraDriverPart", (_WITHOUT_DRIVER,)),
    "GpuOperatorPart | str | bool": Row("GpuOperatorPart"),
    "ExampleDriverPart | str | bool": Row("ExampleDriverPart"),
    "NodePluginPart | Literal['sim', 'nvml']": Row("NodePluginPart"),
    "ClusterTarget": Row("ClusterTarget"),
    "Toleration": Row("Toleration"),
    "Alternative": Row("Alternative"),
    "DeviceRequest": Row("DeviceRequest"),
    "Replace": Row("Replace"),
    "Across": Row("SharedAcross"),
    "Level": Row("PodSecurityLevel"),
    "PlatformName": Row("PlatformName"),
    # Outputs.
    "pulumi.Output[str]": Row("pulumi.Output[str]"),
    "pulumi.Output[PlatformName | None]": Row("pulumi.Output[str] | None"),
    "str | pulumi.Output[str]": Row("pulumi.Output[str]"),
    "pulumi.Output[str] | None": Row("pulumi.Output[str] | None"),
    "Mapping[str, InstalledClass]": Row("pulumi.Output[dict[str, str]]"),
    "Mapping[str, Installed]": Row("pulumi.Output[dict[str, InstalledChart]]"),
    "Mapping[str, DeviceClaimComponent]": Row("pulumi.Output[dict[str, TenantClaim]]"),
    "Sequence[Mapping[str, Any]] | pulumi.Output[list[dict[str, Any]]]": Row("pulumi.Output[list[Any]]"),
}
"""Types of arguments and outputs, as sources of signatures have them without `None`. Lists, mappings and literals follow from them."""

NOT_SHOWN: Final = frozenset({"opts", "DraDriver.operator"})
"""Options, which every resource has by itself, and what no other language has: the operator of a driver is given to a `GpuPlatform`."""

_NO_OUTPUT: Final = "resources"
"""The children, which the state has as resources of their own."""

ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "AllocationMode": ("Single", "All"),
    "BackEnd": ("sim", "nvml"),
    "WebhookTlsMode": ("cert-manager", "secret"),
    "DeviceTaintEffect": ("None", "NoSchedule", "NoExecute"),
    "ExampleProfile": ("gpu", "cpu", "net"),
    "FailurePolicy": ("Fail", "Ignore"),
    "ImexMode": ("driverManaged", "hostManaged"),
    "IssuerType": ("selfsigned", "clusterissuer", "issuer"),
    "KernelModuleType": ("auto", "open", "proprietary"),
    "LogLevel": ("error", "warning", "info", "debug"),
    "MigStrategy": ("none", "single", "mixed"),
    "PlatformName": ("aks", "gke", "eks", "kubeadm", "kind", "openshift"),
    "PodSecurityLevel": ("privileged", "baseline", "restricted"),
    "QueueStrategy": ("BestEffortFIFO", "StrictFIFO"),
    "Replace": ("delete-first",),
    "SharedAcross": ("containers", "pods"),
    "TaintOperator": ("Exists", "Equal"),
    "TimeSlice": ("Default", "Short", "Medium", "Long"),
    "TolerationEffect": ("NoSchedule", "NoExecute"),
    "VfioBackend": ("LegacyOnly", "PreferIommuFD"),
}
"""What has a closed list of values, by a name for the types of other languages."""

_MEANINGS_OF_ENUMS: Final[Mapping[str, str]] = {
    "AllocationMode": "IMEX channels that a pod gets.",
    "BackEnd": "Devices that the node plugin publishes.",
    "WebhookTlsMode": "Who makes the webhook's certificate.",
    "DeviceTaintEffect": "What a taint does to pods.",
    "ExampleProfile": "Kind of devices that the example driver pretends to have.",
    "FailurePolicy": "What the API server does while the webhook does not answer.",
    "ImexMode": "Who runs the daemons of ComputeDomains.",
    "IssuerType": "Kind of cert-manager's issuer.",
    "KernelModuleType": "Kernel modules to install.",
    "LogLevel": "Least level of messages that are logged.",
    "MigStrategy": "How the device plugin shows MIG devices.",
    "PlatformName": "Where the cluster runs.",
    "PodSecurityLevel": "A level of the Pod Security Standards.",
    "QueueStrategy": "Which workload of a queue is admitted next.",
    "Replace": "How an object with an explicit name is changed.",
    "SharedAcross": "Who shares a whole GPU.",
    "TaintOperator": "How a toleration compares the value of a taint.",
    "TimeSlice": "Length of a slice of time.",
    "TolerationEffect": "Effect of the taints that are tolerated.",
    "VfioBackend": "How a GPU is handed to a virtual machine.",
}

_CONFIG_KEYS: Final[Mapping[str, str]] = {
    "mig": "MigDeviceConfig",
    "vfio": "VfioDeviceConfig",
    "channel": "ComputeDomainChannelConfig",
    "example": "ExampleGpuConfig",
    "opaque": "OpaqueConfig",
}
_SHARINGS: Final = ("TimeSlicing", "Mps", "SpacePartitioning")
_TEMPLATES: Final[Mapping[str, str]] = {
    "claim": "GpuClaimTemplate",
    "mig": "MigPartition",
    "shared": "SharedGpu",
    "nvlink": "NvlinkGroup",
}
_OF_THE_TENANT: Final = frozenset({"namespace", "object_name", "replace"})
_PARTS: Final = ("DraDriver", "GpuOperator", "ExampleDriver", "NodePlugin")
_RECORDS: Final = (
    *("Toleration", "Alternative", "DeviceRequest", *_SHARINGS, *_CONFIG_KEYS.values()),
    "PodSecurity",
    *("CounterSource", "CapacitySource"),
)

MEANINGS: Final[Mapping[str, str]] = {
    "device_class": "Name of a DeviceClass, such as `${h100.objectName}` in YAML.",
    "device_classes": "Names of DeviceClasses, at most 8.",
    "select": "A test in CEL that each device must pass.",
    "GpuDeviceClass.select": "A test in CEL that each GPU must pass. Without it and `match`, all of the driver's.",
    "count": "Number of devices, at most 32; 1 when left out. It is checked as soon as it is known.",
    "MigPartition.count": "How many devices of `profile`, or of that size; 1 when left out.",
    "first_available": "Alternatives in place of a class, the best first.",
    "tolerations": "Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36.",
    "requests": "Names of the requests that it is for, alternatives as `request/alternative`; none for all.",
    **{
        f"{name}.requests": "Several requests, or one with a name of your own, at most 32." for name in CLAIMS
    },
    "GpuTenant.tolerations": "Tolerations of each of the templates that has none.",
    "constraints": "What the devices share or must not share.",
    "configs": "How drivers set the devices up.",
    "GpuDeviceClass.configs": "How the driver sets the GPUs up, unless a claim brings a config of its own.",
    "GpuPlatform.driver": "NVIDIA's DRA driver: what is different from its defaults. It is installed unless `withoutDriver` is `true`.",
    "GpuPlatform.operator": "NVIDIA's GPU Operator: what is different from its defaults; `{}` installs the newest. Left out, none.",
    "GpuPlatform.example": "Kubernetes' example driver: what is different from its defaults; `{}` installs the newest. Left out, none.",
    "GpuPlatform.node_plugin": "The dra-infra node plugin: what is different from its defaults. Left out, none.",
    "templates": "Claim templates of the namespace, by name. A change deletes the template and makes another of the same name; "
    "pods keep the claims that they have.",
    "roles": "Name of the `GpuRoles` that has the roles of members. Let the tenant depend on it where it is in the same program.",
    "pod_security": "Which pods the API server refuses in the namespace, by the Pod Security Standards: level `baseline` when left out, "
    "without which a privileged or hostPath pod takes every device of its node without a claim.",
    "quota": "Number of devices by the name of their class: `{h100: 8, mig.nvidia.com: 7}`.",
    "GpuTenant.quota": "Devices that claims and pods of the namespace may have at once, by the name of their class: "
    "`{h100: 8, mig.nvidia.com: 7}`; 0 refuses a class. All devices of a node count as 32, a share as 1, and of alternatives the "
    "largest of each class. Limits of extended resource names stand in `hard`.",
    "KueueQueue.quota": "Devices that are admitted at once, by the name of their class: `{h100: 64, mig.nvidia.com: 56}`.",
    "sources": "What classes are charged in place of devices, by the name of one of `resources`.",
    "profiles": "Several MIG profiles, one request each: `[3g.40gb, 1g.10gb]` are requests `mig-0` and `mig-1`.",
    "sharing": "How the processes that use a device share it; left out, as the driver does by default.",
    "SharedGpu.sharing": "How the driver divides a whole GPU; left out, processes take turns as the GPU does by default.",
    "NodePlugin.openshift": "Let its pods be privileged on OpenShift, where SecurityContextConstraints decide beside the labels of the "
    "Namespace. A platform `openshift` sets it.",
    "DeviceRequest.name": "Name of the request, a DNS label, by which containers refer to it.",
    "OpaqueConfig.parameters": "A JSON object, by custom with `apiVersion` and `kind`.",
    "Toleration.effect": "Left out, both for the scheduler; pods are then not kept from being evicted.",
    "Toleration.seconds": "How long a taint `NoExecute` is tolerated; for ever when left out.",
    "CounterSource.select": "A test in CEL for the partitions; all when left out. The one that consumes most is charged.",
    "CapacitySource.select": "A test in CEL for the devices; all when left out.",
    "Mps.active_thread_percentage": "Part of the threads that each process may use, 0 to 100; no limit when left out.",
    "Mps.pinned_device_memory_limit": 'Device memory that each process may pin, `"10Gi"`, at least 1Mi; no limit when left out.',
    "Mps.per_device_pinned_memory_limit": "The same by device: by UUID, or by the index of the device in the alphabetical order of UUIDs.",
    "DraDriver.crds": "Folders, files or addresses of the CRDs: they are applied before the chart, and upgraded with it. Without them "
    "Helm installs those of the chart once, and never upgrades them. The provider reads files from the folder of your project.",
    # Outputs.
    "output object_name": "Name of the object.",
    "output device_classes": "Names of the DeviceClasses that it brings, by name. What takes one is made after the driver.",
    "output templates": "The templates, by name, with what pods need to use them.",
    "output platform": "Where the cluster runs; nothing where that was not given.",
    "output channel_template": "Name of the ResourceClaimTemplate that the driver's controller makes for the ComputeDomain; "
    "nothing for a group on one node.",
    "output pods": "How many pods the group has.",
}
"""Texts in place of docstrings, by `Component.argument`, else by argument."""

_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "DraDriver": "",
    "ExampleDriver": "",
    "GpuClaim": "",
    "GpuOperator": "",
    "GpuClaimTemplate": "Most need no list: `device_class`, `count` and `match` make one request, named `gpu`. `requests` is for the rest "
    "and excludes them. Pods take `pod_claim` among their claims, and containers `container_claim`.",
    "GpuPlatform": "What you write nowhere follows from the platform, and for the DRA driver from the operator: where the kernel driver is, "
    "that the device plugin is off, the label for eviction.",
    "GpuRoles": "Those of team leads and developers are bound in namespaces, by `members` of a `GpuTenant`; the others here.",
    "KueueQueue": "Kueue 0.18 or newer has to run on the cluster, with the output `device_class_mappings` in its configuration: it reads them "
    "when it starts, and does not admit workloads whose class no mapping has. Nor does it admit claims by name, alternatives and requests "
    "for all devices.",
    "MigPartition": "A ResourceClaimTemplate, so that every pod has its own devices, or with `shared` a ResourceClaim. It is met by static "
    "MIG devices as well as by those of DynamicMIG.",
    "NvlinkGroup": "Up to what a node joins it is a ResourceClaimTemplate for one pod. Up to a rack it is a ComputeDomain too, for `pods` pods "
    "on as many nodes: these need `channel_pod_claim`, `channel_container_claim`, `pod_labels` and `pod_affinity_term` beside the claim.",
    "SharedGpu": "`across` says whether containers of a pod or pods of a node share a whole GPU. With `memory` or `shares` each pod gets a claim "
    "of its own, which takes a part of a GPU; from driver 0.5 and Kubernetes 1.36 on. Nothing limits what a process uses.",
}
"""What follows the first line of a component's docstring, where that is about Python."""

_CLAIM_OUTPUTS: Final = (
    Property(
        "pod_claim",
        "pulumi.Output[PodClaim]",
        "The entry for `spec.resourceClaims` of a pod that uses the claim.",
    ),
    Property(
        "container_claim",
        "pulumi.Output[ContainerClaim]",
        "The entry for `resources.claims` of each container that uses the devices.",
    ),
)
_GROUP_OUTPUTS: Final = (
    Property(
        "channel_pod_claim",
        "pulumi.Output[PodClaim] | None",
        "A second entry for `spec.resourceClaims`, for a group of several nodes: the channel of its ComputeDomain.",
    ),
    Property(
        "channel_container_claim",
        "pulumi.Output[ContainerClaim] | None",
        "A second entry for `resources.claims` of the containers, for a group of several nodes.",
    ),
    Property(
        "pod_labels",
        "pulumi.Output[dict[str, str]]",
        "Labels that the pods of a group of several nodes need.",
    ),
    Property(
        "pod_affinity_term",
        "pulumi.Output[Any] | None",
        "For a group of several nodes: a required term of the pods' `podAffinity`, which keeps them on one NVLink domain.",
    ),
)

_HEAD: Final = '''"""Types of the package for all languages, from which Pulumi infers its schema: components, objects and enums.

`make golden` writes this module from the signatures and docstrings of the components. Do not edit it by hand.
"""

from enum import Enum
from typing import Any, Required, TypedDict

import pulumi
'''
# Without `from __future__ import annotations`: Pulumi reads types, not texts.


def rendered() -> str:
    """Return the text of the module, as signatures and docstrings have it now."""
    parts = [_HEAD, *_enums(), *_objects()]
    for name in COMPONENTS:
        parts += [
            _dictionary(f"{name}Args", f"Arguments of `{name}`.", properties_of(name)),
            _component(name),
        ]
    return _formatted("\n\n".join(parts))


def properties_of(name: str, *, without: frozenset[str] = frozenset()) -> list[Property]:
    """Return the properties for the arguments of a public name; `name` only where it is none of a component."""
    sources = annotations_of(name)
    left_out = NOT_SHOWN | without | ({"name"} if name in COMPONENTS else set())
    properties: list[Property] = []
    for argument in arguments_of(name):
        if argument.name in left_out or f"{name}.{argument.name}" in left_out:
            continue
        row = _row(sources[argument.name], owner=name, argument=argument.name)
        meaning = _meaning(name, argument.name, argument.meaning)
        properties.append(Property(argument.name, row.type, meaning, is_required=not argument.default))
        properties += row.beside
    # A count may be given by the property beside it.
    beside = {each.name for each in properties}
    return [
        each._replace(is_required=False) if each.name == "count" and "all_devices" in beside else each
        for each in properties
    ]


def _row(source: str, *, owner: str, argument: str) -> Row:
    text = re.sub(r" \| None$", "", source)
    if (owner, argument) == ("ComputeDomainChannelConfig", "domain_id"):
        return Row("pulumi.Input[str]")
    if text in TYPES:
        return TYPES[text]
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Subscript):
        raise LookupError(f"{owner}.{argument}: TYPES has nothing for {text}")  # noqa: TRY004  (a gap in a table)
    generic, inside = ast.unparse(node.value), node.slice
    if generic == "Literal":
        return Row(_enum_of(ast.literal_eval(inside)))
    if generic == "Sequence":
        return Row(f"list[{_row(ast.unparse(inside), owner=owner, argument=argument).type}]")
    if generic == "Mapping" and isinstance(inside, ast.Tuple):
        # Names of classes are keys too: whatever a key is in Python, it is a text in the schema.
        return Row(f"dict[str, {_row(ast.unparse(inside.elts[1]), owner=owner, argument=argument).type}]")
    raise LookupError(f"{owner}.{argument}: TYPES has nothing for {text}")


def _enum_of(values: tuple[str, ...]) -> str:
    names = [name for name, listed in ENUMS.items() if listed == values]
    if len(names) != 1:
        raise LookupError(f"ENUMS has {names} for {values}")
    return names[0]


def _meaning(owner: str, name: str, docstring: str) -> str:
    return MEANINGS.get(f"{owner}.{name}") or MEANINGS.get(name) or in_words_of_the_schema(docstring)


def in_words_of_the_schema(text: str) -> str:
    """Return a docstring with names and values as other languages write them.

    Raises:
        ValueError: Something in it is Python's: `MEANINGS` has to say it otherwise.
    """
    snake = {
        *(name for each in (*COMPONENTS, *_RECORDS) for name in annotations_of(each)),
        *(each.name for each in (*_CLAIM_OUTPUTS, *_GROUP_OUTPUTS)),
        "device_class_mappings",
    }

    def rename(code: str) -> str:
        code = re.sub(
            r"\b([a-z]+(?:_[a-z]+)+)\b",
            lambda word: _camel(word[1]) if word[1] in snake else word[1],
            code,
        )
        code = re.sub(r'\b(\w+)="([^"]*)"', r"\1: \2", code)
        return code.replace("True", "true").replace("False", "false")

    text = re.sub(r"\*(\w+)\*", r"`\1`", text)
    parts = text.split("`")
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = rename(part)
        else:
            parts[place] = re.sub(r"\b(True|False)\b", lambda word: f"`{word[1].lower()}`", part)
    changed = "`".join(parts)
    if re.search(r"\bdra\.|\bNone\b(?!`)|\bpartial\(|attach\(", changed):
        raise ValueError(f"MEANINGS has to say this otherwise: {changed}")
    return changed


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(each.capitalize() for each in rest)


def _enums() -> Iterator[str]:
    for name, values in ENUMS.items():
        lines = [f"class {name}(Enum):", f'    """{_MEANINGS_OF_ENUMS[name]}"""\n']
        lines += [f"    {_member(value)} = {value!r}" for value in values]
        yield "\n".join(lines)


_MEMBERS: Final[Mapping[str, str]] = {
    # Python has the name `None` for itself, and the linter takes anything called so for a password.
    "None": "NoEffect",
    "none": "NoDevices",
    "secret": "Given",
}
"""Names of values that cannot be their own name."""


def _member(value: str) -> str:
    """Return the name of a value, which SDKs put behind that of its enum: `ReplaceDeleteFirst` in Go."""
    return _MEMBERS.get(value) or "".join(part[0].upper() + part[1:] for part in value.split("-"))


def _objects() -> Iterator[str]:
    yield _dictionary("Match", "What a device must be. All fields that are given must hold.", _match_fields())
    for name in _SHARINGS:
        yield _record(name)
    yield _dictionary("Sharing", "How processes share a device: one of the fields.", _sharing_fields())
    yield _dictionary("ClusterTarget", "The cluster that objects are meant for.", _target_fields())
    yield _record("Toleration")
    for name in ("Alternative", "DeviceRequest"):
        yield _record(name)
    yield _dictionary(
        "Constraint", "What devices share or must not share: one of the two attributes.", _constraint_fields()
    )
    for name in _CONFIG_KEYS.values():
        yield _dictionary(name, _first_line(name), properties_of(name, without=frozenset({"requests"})))
    config = "How a driver sets devices up: `requests`, and one of the other fields. Of the configs for one device only the last one counts."
    yield _dictionary("DeviceConfig", config, _config_fields())
    yield _record("PodSecurity")
    yield _record("CounterSource")
    yield _record("CapacitySource")
    yield _dictionary(
        "QueueSource", "What a queue is charged in place of devices: one of the fields.", _source_fields()
    )
    for name in _PARTS:
        yield _dictionary(
            f"{name}Part",
            f"`{name}`, as a part of a platform.",
            properties_of(name, without=frozenset({"target"})),
        )
    for name in _TEMPLATES.values():
        described = f"A `{name}` that a tenant is given. Its namespace and name are the tenant's."
        yield _dictionary(f"Tenant{name}", described, properties_of(name, without=_OF_THE_TENANT))
    yield _dictionary(
        "TenantTemplate", "A claim template of a tenant: one of the fields.", _template_fields()
    )
    yield _output("PodClaim", "An entry of a pod's `spec.resourceClaims`.", _pod_claim_fields())
    yield _output(
        "ContainerClaim", "An entry of a container's `resources.claims`.", _container_claim_fields()
    )
    yield _output(
        "TenantClaim",
        "A claim template that a tenant was given.",
        [
            _object_name(),
            Property("pod_claim", "PodClaim", _CLAIM_OUTPUTS[0].meaning),
            Property("container_claim", "ContainerClaim", _CLAIM_OUTPUTS[1].meaning),
        ],
    )
    yield _output("InstalledChart", "A chart that is installed.", _chart_fields())


def _match_fields() -> list[Property]:
    types = {"text": "str", "number": "int", "texts": "dict[str, str]", "values": "dict[str, Any]"}
    return [Property(name, types[field.kind], field.meaning) for name, field in FIELDS.items()]


def _sharing_fields() -> list[Property]:
    return [Property(_snake(name), name, _first_line(name)) for name in _SHARINGS]


def _target_fields() -> list[Property]:
    minor = "Minor version, `1.37`. Left out, objects are checked for the oldest and the newest that are supported."
    gates = "Feature gates that the cluster sets otherwise than its minor does: `{DRAAdminAccess: false}`."
    return [Property("kubernetes", "str", minor), Property("gates", "dict[str, bool]", gates)]


def _constraint_fields() -> list[Property]:
    attribute = "By its full name, `gpu.nvidia.com/productName`"
    return [
        Property("match_attribute", "str", f"The attribute that has one value on all devices. {attribute}."),
        Property(
            "distinct_attribute", "str", f"The attribute whose value no two devices share. {attribute}."
        ),
        Property("requests", "list[str]", MEANINGS["requests"]),
    ]


def _config_fields() -> list[Property]:
    shared = [
        Property("time_slicing", "TimeSlicing", "Whole GPUs of NVIDIA's driver, whose processes take turns."),
        Property("mps", "Mps", "Whole GPUs of NVIDIA's driver, which processes share through MPS."),
    ]
    others = [Property(key, name, _first_line(name)) for key, name in _CONFIG_KEYS.items()]
    return [
        *shared,
        *others,
        Property("requests", "list[str]", MEANINGS["requests"] + " Those of a class have none."),
    ]


def _source_fields() -> list[Property]:
    return [
        Property(key, name, _first_line(name))
        for key, name in (("counter", "CounterSource"), ("capacity", "CapacitySource"))
    ]


def _template_fields() -> list[Property]:
    return [Property(key, f"Tenant{name}", f"A `{name}`.") for key, name in _TEMPLATES.items()]


def _pod_claim_fields() -> list[Property]:
    name = "Name of the ResourceClaim that pods share"
    template = "Name of the ResourceClaimTemplate that each pod gets a claim from"
    return [
        Property("name", "str", "Name by which containers refer to the claim."),
        Property("resource_claim_name", "str | None", f"{name}."),
        Property("resource_claim_template_name", "str | None", f"{template}."),
    ]


def _container_claim_fields() -> list[Property]:
    return [Property("name", "str", "Name of the pod's entry.")]


def _chart_fields() -> list[Property]:
    return [
        Property("release_name", "str", "Name of the helm release."),
        Property("namespace", "str", "Where it is."),
        Property("version", "str", "Version of the chart, without a leading v."),
    ]


def _object_name() -> Property:
    return Property("object_name", "str", MEANINGS["output object_name"])


def _record(name: str) -> str:
    return _dictionary(name, _first_line(name), properties_of(name))


def _first_line(name: str) -> str:
    return in_words_of_the_schema((inspect.getdoc(getattr(dra, name)) or "").partition("\n")[0])


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _dictionary(name: str, described: str, properties: list[Property]) -> str:
    lines = [f"class {name}(TypedDict, total=False):", f"{_described(described)}\n"]
    for each in properties:
        type_ = f"Required[{each.type}]" if each.is_required else each.type
        lines += [f"    {each.name}: {type_}", _docstring(each.meaning)]
    return "\n".join(lines)


def _output(name: str, described: str, properties: list[Property]) -> str:
    lines = [f"class {name}:", f"{_described(described)}\n"]
    for each in properties:
        lines += [f"    {each.name}: {each.type}", _docstring(each.meaning)]
    return "\n".join(lines)


def _component(name: str) -> str:
    lines = [f"class {name}(pulumi.ComponentResource):", f"{_described(_description(name))}\n"]
    for each in component_outputs(name):
        lines += [f"    {each.name}: {each.type}", _docstring(each.meaning)]
    lines += [
        f"\n    def __init__(self, name: str, args: {name}Args, opts: pulumi.ResourceOptions | None = None) -> None: ..."
    ]
    return "\n".join(lines)


def _description(name: str) -> str:
    first, *rest = (" ".join(each.split()) for each in summary_of(name).split("\n\n"))
    others = [_DESCRIPTIONS[name]] if name in _DESCRIPTIONS else rest
    return "\n\n".join(in_words_of_the_schema(each) for each in [first, *others] if each)


def component_outputs(name: str) -> list[Property]:
    """Return the outputs of a component, those for pods in place of `attach`."""
    outputs: list[Property] = []
    for output, source, meaning in outputs_of(name):
        if output == _NO_OUTPUT:
            continue
        type_ = "pulumi.Output[int]" if source == "int" else _output_type(source, name, output)
        outputs.append(
            Property(output, type_, MEANINGS.get(f"output {output}") or in_words_of_the_schema(meaning))
        )
    if name in CLAIMS:
        outputs += _CLAIM_OUTPUTS
    if name == "NvlinkGroup":
        outputs += _GROUP_OUTPUTS
    if name == "DeviceTaint":
        outputs.append(_object_name()._replace(type="pulumi.Output[str]"))
    return outputs


def _output_type(source: str, owner: str, name: str) -> str:
    row = TYPES[source] if source in TYPES else _row(source, owner=owner, argument=name)
    type_ = row.type
    return type_ if type_.startswith("pulumi.Output") else f"pulumi.Output[{type_}]"


def _docstring(text: str) -> str:
    """Return the docstring of a property."""
    lines = textwrap.wrap(f'"""{text}"""', 106, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "    ")


def _described(text: str) -> str:
    """Return the docstring of a class: its first paragraph in one line, and the others below it."""
    first, _, rest = text.partition("\n\n")
    if not rest:
        return f'    """{first}"""'
    paragraphs = [
        "\n".join(textwrap.wrap(each, 110, break_long_words=False, break_on_hyphens=False))
        for each in rest.split("\n\n")
    ]
    return textwrap.indent(
        "\n\n".join([f'"""{first}', *paragraphs]) + '\n"""', "    ", lambda line: bool(line.strip())
    )


def _formatted(source: str) -> str:
    """Return *source* formatted as all of our modules are."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--no-cache", "--stdin-filename", str(MODULE), "-"],
        cwd=ROOT,
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
