"""Labels of vendors and of clouds that pods select nodes by, as selectors of devices.

A label is of a node, and says one value for all its GPUs; an attribute is of a device. What no attribute says stays a label,
and needs that GPU feature discovery or its like keeps running, or that the cloud goes on setting it.

Labels of GKE also say what one `nvidia.com/gpu` of a node is: a MIG device, or a share of one that containers have together.

Source: catalog/data/node_labels.yaml; internal/lm of NVIDIA/k8s-device-plugin 0.20.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import and_, or_
from typing import Any, Final, NamedTuple

from dra_infra.catalog.machines import products_by_label
from dra_infra.catalog.vocabulary import product_memory, product_names, read_data
from dra_infra.kubernetes.api import mappings
from dra_infra.migration.device_plugin import MIG_NAME, DevicePlugin, Replicas, Way, mig_profile
from dra_infra.selectors.any_attribute import VersionAttribute, attribute, capacity
from dra_infra.selectors.attributes import Attribute, TextAttribute
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector

PREFIX: Final = "nvidia.com/"
CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
_PARTITION_OF_AMD: Final = "amd.com/gpu.compute-memory-partition"
_PARTITION: Final = "cloud.google.com/gke-gpu-partition-size"
_SHARING: Final = "cloud.google.com/gke-gpu-sharing-strategy"
_CLIENTS: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"
SERVING: Final = (_PARTITION, _SHARING, _CLIENTS)
"""Labels of GKE that change what one `nvidia.com/gpu` is."""

_CARD_MEMORY: Final = frozenset(
    {"karpenter.k8s.aws/instance-gpu-memory", "eks.amazonaws.com/instance-gpu-memory"}
)
"""Memory of a whole GPU in MiB, as EC2 calls it: 16384 for a T4, whose driver says 15360."""

_SHARES: Final = re.compile(
    r"nvidia\.com/gpu\.(?:product=.*-SHARED|replicas=(?![01]$)[0-9]+|sharing-strategy=(?:time-slicing|mps))"
)
"""Labels of GPU feature discovery with the values that nodes have where devices are shared."""

NODE_SHARES: Final = ("nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy")
"""Labels that say no more than that: no node has them where claims share devices."""

_MIG_CONFIG: Final = re.compile(f"all-({MIG_NAME})")
"""Names of configurations of mig-parted that cut all GPUs of a node alike; what others do is not known (config-default.yaml)."""

_WAYS: Final[Mapping[str, Way]] = {"time-sharing": "time-slicing", "mps": "mps"}
_VERSIONS: Final[Mapping[str, tuple[str, VersionAttribute]]] = {
    "nvidia.com/gpu.compute.major": ("compute", gpu.compute_capability),
    "nvidia.com/gpu.compute.minor": ("compute", gpu.compute_capability),
    **{
        f"nvidia.com/cuda.{name}.{part}": (group, attribute)
        for group, attribute in (("driver", gpu.driver_version), ("runtime", gpu.cuda_version))
        for name in (f"{group}-version", group)
        for part in ("full", "major", "minor")
    },
}
"""Labels with a version or a part of one."""

_WITH_VALUE: Final = re.compile(
    r"(amd\.com/gpu\.[a-z-]+)\.(.+)|(gpu\.intel\.com/device-id)\.03[08]0-(.+)\.present"
)
"""Labels whose name has the value, of nodes with at least one such GPU: AMD's say how many, and Intel's say `true`."""


@cache
def _known() -> Mapping[str, Any]:
    """Returns the facts on labels, by kind of fact."""
    return read_data("node_labels.yaml")


class Requirement(NamedTuple):
    """One requirement of a node selector, as `matchExpressions` has it.

    Args:
        key: The label.
        operator: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
        values: What it is compared with.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Meaning(NamedTuple):
    """The meaning of requirements for devices.

    Args:
        selector: What devices have to pass; None where that is nothing.
        profiles: MIG profiles, or modes of AMD with parts of GPUs, of which one is meant; empty where none is.
        used: The requirements that the selector stands for.
    """

    selector: Selector | None
    profiles: tuple[str, ...]
    used: frozenset[Requirement]


class Serving(NamedTuple):
    """One `nvidia.com/gpu` as labels of nodes describe it.

    Args:
        profile: The MIG profile of the device; empty where they name none.
        replicas: How containers share the device; None where they do not say so.
        unclear: Why nobody can say what it is; empty where it is clear.
        shared: A label of GPU feature discovery that only nodes with shared GPUs have; how, the plugin's configuration says.
    """

    profile: str = ""
    replicas: Replicas | None = None
    unclear: str = ""
    shared: str = ""


NOTHING_SAID: Final = Serving()
"""Labels that leave it to the plugin's configuration."""


def is_gpu_label(key: str) -> bool:
    """True for a label of nodes with GPUs."""
    return who_sets(key) != ""


def who_sets(key: str) -> str:
    """Says what has to go on for nodes with GPUs to have a label; empty for other labels."""
    if _is_of_cloud(key):
        return "its cloud goes on setting it"
    starts = (start for start in _known()["setters"] if key.removeprefix("beta.").startswith(start))
    return str(_known()["names"].get(key) or _known()["setters"].get(next(starts, ""), ""))


def vendor_of(key: str) -> str:
    """The end of the names of classes whose devices a label of nodes with GPUs tells apart."""
    others = {"amd.com": "gpu.amd.com", "gpu.intel.com": "gpu.intel.com"}
    return others.get(key.removeprefix("beta.").partition("/")[0], "nvidia.com")


def _is_of_cloud(key: str) -> bool:
    return key.startswith(tuple(_known()["clouds"]))


def stays(key: str) -> bool:
    """True for a label that stays when a selector says the same: clouds and their autoscalers choose machines by it."""
    return _is_of_cloud(key) and key not in SERVING


def labels_of_cards(plugin: DevicePlugin | None) -> frozenset[str]:
    """Labels that say of a whole GPU what its MIG devices have less of."""
    is_single = plugin is not None and plugin.strategy == "single"
    return _CARD_MEMORY if is_single else _CARD_MEMORY | {f"{PREFIX}gpu.memory"}


def is_serving(requirement: Requirement) -> bool:
    """True where a requirement says what one `nvidia.com/gpu` is; a label that nodes lack changes nothing."""
    return requirement.key in SERVING and requirement.operator != "DoesNotExist"


def _says_shared(requirement: Requirement) -> bool:
    """True where a requirement holds on no nodes but those whose GPUs are shared, by labels of GPU feature discovery."""
    key, operator, values = requirement
    if operator == "Gt" and len(values) == 1 and _is_number(values[0]):
        operator = "In"
        values = (str(int(values[0]) + 1),)
    labels = [f"{key}={each}" for each in values]
    return operator == "In" and bool(labels) and all(map(_SHARES.fullmatch, labels))


def read_serving(requirements: Sequence[Requirement]) -> Serving:
    """Returns what requirements that all hold say of one `nvidia.com/gpu`; each label has to have one value."""
    said: dict[str, str] = {}
    for each in filter(is_serving, requirements):
        if each.operator != "In" or {*each.values} != {said.setdefault(each.key, "".join(each.values[:1]))}:
            return Serving(unclear=f"{each.key} has no one value in its node selectors")
    profile, way, clients = (said.get(key, "") for key in SERVING)
    if profile and not re.fullmatch(r"[0-9]+g\.[0-9]+gb", profile, re.ASCII):
        return Serving(unclear=f"{_PARTITION} names no MIG profile")
    if not way and not clients:
        shared = next((each.key for each in requirements if _says_shared(each)), "")
        return Serving(profile) if profile else Serving(shared=shared)
    if way not in _WAYS or not _is_number(clients) or int(clients) < 2:
        return Serving(unclear=f"{_SHARING} and {_CLIENTS} do not both say how containers share a GPU")
    return Serving(profile, Replicas(_WAYS[way], int(clients), renamed=False, one_each=False))


def requirements_of(node_selector: Mapping[str, Any]) -> list[Requirement]:
    """The requirements of a pod's `nodeSelector`."""
    return [Requirement(str(key), "In", (str(value),)) for key, value in node_selector.items()]


def requirements_in(term: Mapping[str, Any]) -> list[Requirement]:
    """The requirements of one term of a node affinity; `matchFields` are of no label."""
    return [
        Requirement(
            str(each.get("key")),
            str(each.get("operator")),
            tuple(map(str, values)) if isinstance(values := each.get("values"), list) else (),
        )
        for each in mappings(term.get("matchExpressions"))
    ]


def read_requirements(requirements: Sequence[Requirement], serving: Serving = NOTHING_SAID) -> Meaning:
    """Returns the meaning for devices of requirements that all hold; those that no attribute says are not used.

    Args:
        requirements: Those of one node selector, or of one term of an affinity.
        serving: What all node selectors of the pod say of one `nvidia.com/gpu`.
    """
    selectors: list[Selector] = []
    profiles: list[str] = [serving.profile] if serving.profile else []
    used: set[Requirement] = set() if serving.unclear else set(filter(is_serving, requirements))
    used |= {
        each for each in requirements if serving.shared and each.key in NODE_SHARES and _says_shared(each)
    }
    for each in requirements:
        name = each.key.removeprefix(PREFIX)
        if not is_gpu_label(each.key):
            continue
        profiles += _read_mig_config(each)
        if name == "gpu.present" and (each.operator == "Exists" or each == (each.key, "In", ("true",))):
            used.add(each)
        elif name == "gpu.product" and each.operator in ("In", "NotIn") and each.values:
            found, parts = _read_products(each.values)
            # Nodes that do not share GPUs of this product are not left out.
            plain = {each.removesuffix("-SHARED") for each in each.values}
            if each.operator == "NotIn" and (any(parts) or plain - {*each.values}):
                continue
            profiles += parts
            selectors.append(found if each.operator == "In" else ~found)
            used.add(each)
        elif (selector := _read_plain(name, each)) is not None:
            selectors.append(selector)
            used.add(each)
            if each.key == _PARTITION_OF_AMD and each.operator == "In":
                profiles += [mode for mode in each.values if not mode.startswith("spx_")]
    for group in ("compute", "driver", "runtime"):
        of_version = [each for each in requirements if _VERSIONS.get(each.key, ("",))[0] == group]
        if (selector := _read_version(of_version)) is not None:
            selectors.append(selector)
            used.update(of_version)
    return Meaning(
        reduce(and_, selectors) if selectors else None, tuple(dict.fromkeys(profiles)), frozenset(used)
    )


def any_of(meanings: Sequence[Meaning]) -> Selector | None:
    """The selector of terms of which one has to hold; None where one of them holds for all devices."""
    selectors = [each.selector for each in meanings]
    return None if None in selectors else reduce(or_, selectors)


def _read_products(labels: Sequence[str]) -> tuple[Selector, list[str]]:
    """A test of the product that labels name, and the MIG profiles that they name beside it."""
    names: list[str] = []
    patterns: list[str] = []
    profiles: list[str] = []
    for label in labels:
        product, _, profile = label.removesuffix("-SHARED").partition("-MIG-")
        if profile:
            profiles.append(mig_profile(profile))
        known = _products_by_label().get(product)
        if known:
            names += known
        else:
            # The label has a dash for each run of blanks, and for each dash of the name.
            patterns.append("^" + "[ -]".join(map(re.escape, product.split("-"))) + "$")
    tests = [_one_of(list(dict.fromkeys(names)))] if names else []
    tests += [gpu.product.matches(pattern) for pattern in dict.fromkeys(patterns)]
    return reduce(or_, tests), profiles


def _read_mig_config(requirement: Requirement) -> list[str]:
    """The MIG profiles of which all GPUs of nodes have one, by the label that configures them; none where it does not say so."""
    is_one = requirement.key == f"{PREFIX}mig.config" and requirement.operator == "In"
    found = [_MIG_CONFIG.fullmatch(each) for each in requirement.values if is_one]
    return [mig_profile(each[1]) for each in found if each and all(found)]


def _one_of(values: Sequence[str], of: TextAttribute = gpu.product) -> Selector:
    return of == values[0] if len(values) == 1 else of.one_of(*values)


def _read_of_cloud(requirement: Requirement) -> Selector | None:
    """A test of the products that machines of a cloud have under a label; None where the catalogue does not know them.

    Machines without the label have other products, so nothing follows from what a label is not.
    """
    known = products_by_label().get(requirement.key, {})
    operator, values = requirement.operator, requirement.values
    is_memory = requirement.key in _CARD_MEMORY
    if not is_memory and operator == "In" and values and all(each in known for each in values):
        return _one_of(sorted({product for each in values for product in known[each]}))
    # GPUs that nobody knows here may have the same amount: the RTX PRO 4500 of G7 has that of a V100 with 32 GB.
    if not is_memory or operator not in ("Gt", "Lt") or len(values) != 1 or not _is_number(values[0]):
        return None
    # Beyond all that the label leaves out, for such a GPU may lie between.
    bound = int(values[0])
    is_above = operator == "Gt"
    left_out = [
        product
        for value, products in known.items()
        if not (int(value) > bound if is_above else int(value) < bound)
        for product in products
    ]
    if not left_out:
        return None
    amounts = _amounts(left_out)
    return gpu.memory > amounts[-1] if is_above else gpu.memory < amounts[0]


def _amounts(products: Sequence[str]) -> list[str]:
    """Memory of products as their driver says it, the smallest first."""
    return [f"{each}Mi" for each in sorted({product_memory()[product] or 0 for product in products})]


@cache
def _products_by_label() -> Mapping[str, tuple[str, ...]]:
    """Names of products by the label that they have (sanitise in internal/lm/resource.go)."""
    found: dict[str, tuple[str, ...]] = {}
    for name in product_names():
        found[label_of(name)] = (*found.get(label_of(name), ()), name)
    return found


def label_of(product: str) -> str:
    """A product as the label of GPU feature discovery has it."""
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", product).split())


def _read_plain(name: str, requirement: Requirement) -> Selector | None:
    if stays(requirement.key):
        return _read_of_cloud(requirement)
    if vendor_of(requirement.key) != "nvidia.com":
        return _read_other(requirement)
    (_, operator, values) = requirement
    families = _known()["families"]
    if name == "gpu.family" and values and all(each in families for each in values):
        selector = _one_of([families[each] for each in values], gpu.architecture)
        return {"In": selector, "NotIn": ~selector}.get(operator)
    if name == "gpu.memory" and values and all(map(_is_number, values)):
        # The label is in MiB, whatever people take it for.
        amounts = [f"{each}Mi" for each in values]
        equal = reduce(or_, [gpu.memory == each for each in amounts])
        first = amounts[0]
        tests = {"In": equal, "NotIn": ~equal, "Gt": gpu.memory > first, "Lt": gpu.memory < first}
        return tests.get(operator)
    return None


def _read_other(requirement: Requirement) -> Selector | None:
    """A test of devices of AMD or Intel; None where nothing that their drivers publish says the same."""
    key, operator, values = requirement
    key = key.removeprefix("beta.")
    if found := _WITH_VALUE.fullmatch(key):
        # The plugin gave any GPU of such a node; the label is chosen for the one that it names.
        is_asked = (operator, values) in (("Exists", ()), ("In", ("true",)))
        key, value = filter(None, found.groups())
        operator = "In" if is_asked else ""
        values = (value,)
    known = _known()["selectors"].get(key)
    if not (known and values and all(re.fullmatch(known["value"], each, re.ASCII) for each in values)):
        return None
    name, kind = known["name"], known["type"]
    of: Attribute = capacity(name) if kind == "quantity" else attribute(name, kind)

    def test(said: str) -> Selector:
        if not key.endswith(".vram"):
            return of == said
        # The labeller rounds to whole GiB.
        return (of >= f"{1024 * int(said) - 512}Mi") & (of < f"{1024 * int(said) + 512}Mi")

    equal = reduce(or_, [test(re.sub(known["value"], known["says"], each)) for each in values])
    return {"In": equal, "NotIn": ~equal}.get(operator)


def _read_version(parts: Sequence[Requirement]) -> Selector | None:
    """A test of a version from requirements of it and its parts, which all hold; None where no range says one of them."""
    # The same number has an old label and a new one.
    fulls, majors, minors = (
        list(dict.fromkeys(each[1:] for each in parts if each.key.endswith(end)))
        for end in (".full", ".major", ".minor")
    )
    if not parts or not all(values and all(map(_is_number, values)) for _, values in (*majors, *minors)):
        return None
    group, attribute = _VERSIONS[parts[0].key]
    tests = [
        reduce(or_, [attribute == _padded(each) for each in values])
        if operator == "In" and values and all(map(_is_version, values))
        else None
        for operator, values in fulls
    ]
    if minors:
        is_one = [len(values) for _, values in majors] == [1] and len(minors) == 1
        if not is_one or {operator for operator, _ in (*majors, *minors)} != {"In"}:
            return None
        major = int(majors[0][1][0])
        pairs = [(f"{major}.{each}.0", f"{major}.{each + 1}.0") for each in map(int, minors[0][1])]
        # The version of a driver has a third number, which a label of its own says.
        tests += [
            reduce(or_, [(attribute >= least) & (attribute < more) for least, more in pairs])
            if group == "driver"
            else reduce(or_, [attribute == least for least, _ in pairs])
        ]
    else:
        tests += [_read_major(attribute, *each) for each in majors]
    return None if None in tests else reduce(and_, tests)


def _read_major(of: VersionAttribute, operator: str, values: Sequence[str]) -> Selector | None:
    """A test of the first number of a version."""
    spans = [(of >= f"{each}.0.0", of < f"{each + 1}.0.0") for each in map(int, values)]
    within = reduce(or_, [least & most for least, most in spans])
    above = f"{int(values[0]) + 1}.0.0"
    tests = {"In": within, "NotIn": ~within, "Gt": of >= above, "Lt": of < f"{int(values[0])}.0.0"}
    return tests.get(operator)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) is not None


def _is_version(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12}){1,2}", text, re.ASCII) is not None


def _padded(text: str) -> str:
    """Three numbers without leading zeros, as the driver publishes versions."""
    numbers = [str(int(each)) for each in text.split(".")]
    return ".".join([*numbers, "0"][:3])
