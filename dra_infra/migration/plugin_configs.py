"""Configurations of NVIDIA's plugin of which each node has one, as charts, ClusterPolicies and ConfigMaps hold them.

Source: cmd/config-manager and deployments/helm of NVIDIA/k8s-device-plugin; controllers/object_controls.go of NVIDIA/gpu-operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dra_infra.catalog.machines import products_by_label
from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import find_all, mapping, value_at
from dra_infra.migration.device_plugin import (
    WHOLE_GPU,
    DevicePlugin,
    Strategy,
    holds_plugin_config,
    is_plugin_config,
    malformed,
    read_node_labels,
    read_plugin_config,
    read_resource,
    read_strategy,
    tell_device,
)
from dra_infra.migration.needs import containers_of
from dra_infra.migration.node_labels import (
    CONFIG_LABEL,
    SERVING,
    Serving,
    label_of,
    read_serving,
    requirements_of,
)
from dra_infra.output.wording import count_of

_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
_OF_GPUS: Final = {"nvidia.com/gpu.product", "nvidia.com/gpu.present", CONFIG_LABEL}
_OF_OPERATOR: Final = ("mig", "migManager", "operator", "toolkit", "driver")
"""Parts of the GPU Operator's values that the plugin's chart does not have."""

_CHARTS: Final = ("nvidia-device-plugin", "gpu-operator", "nvidia-gpu-operator")
_RELEASES: Final = (
    ("HelmRelease", "spec"),
    ("Application", "spec", "source"),
    ("Application", "spec", "sources", "*"),
    ("HelmChart", "spec"),
)
_NAMED: Final = (("chart", "spec", "chart"), ("chartRef", "name"), ("chart",))
_VALUES: Final = (("values",), ("helm", "valuesObject"), ("helm", "values"), ("valuesContent",))
_ELSEWHERE: Final = (
    *(("valuesFrom",), ("helm", "valueFiles"), ("helm", "parameters")),
    *(("set",), ("valuesSecrets",), ("sourceRef",)),
)
"""Where objects of Flux, Argo CD and the Helm controller of k3s, by their kind, name a chart, its values, and others that do not stand
there. The HelmChart with a sourceRef is that of Flux, which has no values."""

_OF_INTEL: Final = ("intel-device-plugins-gpu",)
_SHARED: Final = re.compile(r"-shared-dev-num[=', ]+([0-9]{1,9})\b")
"""The argument of Intel's plugin, in a list as Python prints it."""

_FALLBACKS: Final = ["named", "single"]
"""How the plugin's chart finds the configuration of nodes without the label where it names none; the GPU Operator gives them an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginConfigs:
    """Configurations of NVIDIA's plugin, of which each node has one.

    Args:
        file: The file that has them, for problems.
        by_name: Each by its name; a file that is one itself has no name for it, and neither has the empty one.
        default: The one of nodes whose label names none; None where nothing says so.
    """

    file: str
    by_name: Mapping[str, DevicePlugin]
    default: str | None = ""

    def serve(self, nodes: Iterable[Mapping[str, Any]] = ()) -> DevicePlugin:
        """How the plugin serves the cluster.

        Where nodes differ, `nvidia.com/gpu` is one thing on some of them and another on others, and is not clear.

        Args:
            nodes: The labels of each node; without one of them that has GPUs, the default counts.

        Raises:
            ProblemsError: `plugin-config-malformed`, where it is not clear which configuration counts.
        """
        served = dict.fromkeys(
            _as_seen(self._choose(labels), labels)
            for labels in map(as_discovered, nodes)
            if labels.keys() & _OF_GPUS
        )
        # Without nodes, those of the other configurations are somewhere.
        known = served or self.by_name.values()
        numbers = frozenset(number for each in known for number in each.numbers)
        first, *others = served or [self._choose(None)]
        if not others:
            return replace(first, numbers=numbers, by_labels=self.read)
        plugins = (first, *others)
        ways = {(each.strategy == "single", each.profiles, each.replicas.get(WHOLE_GPU)) for each in plugins}
        parts = [
            {name: how for name, how in each.replicas.items() if name != WHOLE_GPU}
            for each in plugins
            if each.strategy == "mixed"
        ]
        names = {name for each in parts for name in each}
        told = ", ".join(sorted({tell_plugin(each) for each in plugins}))
        return replace(
            first,
            numbers=numbers,
            strategy="mixed" if parts else first.strategy,
            replicas={**first.replicas, **(parts[0] if parts else {})},
            apart=frozenset(each for each in names if len({part.get(each) for part in parts}) > 1),
            by_labels=self.read,
            unclear=next((each.unclear for each in plugins if each.unclear), "")
            or (f"nodes serve it in different ways: {told}" if len(ways) > 1 else ""),
        )

    def read(self, nodes: Iterable[Mapping[str, Any]]) -> DevicePlugin | None:
        """How the plugin serves nodes of these labels; None where none of them has GPUs."""
        there = [labels for each in nodes if (labels := as_discovered(each)).keys() & _OF_GPUS]
        try:
            return self.serve(there) if there else None
        except ProblemsError as error:
            return DevicePlugin(unclear=f"{self.file} {error.problems[0].message}", is_lacking=True)

    def _choose(self, labels: Mapping[str, Any] | None) -> DevicePlugin:
        """The one that a node of these labels has; None stands for nodes that nobody knows."""
        label = str(mapping(labels).get(CONFIG_LABEL) or "")
        name = label or self.default
        first, *others = dict.fromkeys(self.by_name.values())
        if self.by_name.keys() == {""} or not (label or others):
            return first
        # Some nodes have the empty one, and others what their labels name.
        if name is not None and name in self.by_name and (name or labels is not None):
            return self.by_name[name]
        message = f"holds {count_of(len(self.by_name.keys() - {''}), 'configuration')}, and " + (
            f"none is called {name[:80]!r}" if name else "nothing says which a node has"
        )
        hint = f"add --snapshot FILE or --context NAME of the cluster, whose nodes name theirs by the label {CONFIG_LABEL}, or name a default"
        raise malformed(self.file, message, hint)


def read_plugin_configs(*documents: Any, file: str) -> PluginConfigs:
    """Reads a configuration, a ConfigMap with several, or the ClusterPolicy of the GPU Operator, or values of a chart, of a release too.

    Args:
        documents: Plain data of the file; the ConfigMap that one of them names may stand beside it.
        file: Its name, for problems.

    Raises:
        ProblemsError: `plugin-config-malformed`, and what YAML inside the file is refused for.
    """
    maps = [each for each in map(mapping, documents) if each.get("kind") == "ConfigMap"]
    others = [each for each in map(mapping, documents) if each not in maps]
    others = [each for each in others if not (maps and each.get("kind")) or _configures(each)]
    document = next(filter(_configures, others), others[0] if others else {})
    chart, found, _ = _read_release(document, file)
    of_operator, strategy = _read_strategy(found, file, chart)
    values = mapping(found.get("spec")) or found
    config = mapping(value_at(values, "devicePlugin", "config") if of_operator else values.get("config"))
    name = str(config.get("name") or "")
    named = (each for each in maps if not document or value_at(each, "metadata", "name") == name)
    texts = mapping(config.get("map") or config.get("data") or next(named, {}).get("data"))
    if not texts and (name or not document):
        why = f"names the ConfigMap {name[:80]!r}, which is not in it" if name else "has no configuration"
        hint = "write the ConfigMap that has it into the same file, behind ---, or give --snapshot FILE or --context NAME alone"
        raise malformed(file, why, hint)
    if not texts:
        own = {"version": "v1"} if of_operator or strategy or chart else found
        by_name = {"": read_plugin_config(own, file=file, strategy=strategy)}
        return PluginConfigs(file=file, by_name=by_name)
    by_name = {
        str(name): read_plugin_config(
            next(iter(read_manifests(str(text), file=file)), None),
            file=file if len(texts) == 1 else f"{file}[{name}]",
            strategy=strategy,
        )
        for name, text in texts.items()
    }
    # The names that each way gives, which updateConfigName of config-manager goes through in their order.
    ways = {"named": by_name.keys() & {"default"}, "empty": [""]}
    ways |= {"single": [*by_name] if len(by_name) == 1 else []}
    fallbacks = ["empty"] if of_operator else config.get("fallbackStrategies", _FALLBACKS)
    chosen = fallbacks if isinstance(fallbacks, list) else []
    default = config.get("default") or next((one for each in chosen for one in ways.get(str(each), ())), None)
    if default == "":
        by_name[""] = read_plugin_config({"version": "v1"}, file=file, strategy=strategy)
    return PluginConfigs(file=file, by_name=by_name, default=None if default is None else str(default))


def _read_release(
    document: Mapping[str, Any], file: str, charts: Sequence[str] = _CHARTS
) -> tuple[str, Mapping[str, Any], bool]:
    """Returns the chart that an object releases, of NVIDIA's or these, its values, and whether these are all; any other document as it is."""
    found: list[tuple[str, Any, bool]] = []
    for kind, *path in _RELEASES:
        for _, each in find_all(document, tuple(path)) if document.get("kind") == kind else ():
            names, written, more = (
                [at for steps in places if (at := value_at(each, *steps))]
                for places in (_NAMED, _VALUES, _ELSEWHERE)
            )
            name = str(next(iter(names), "")).rpartition("/")[2]
            is_whole = not more and len(written) < 2
            found.append((name if name in charts else "", next(iter(written), None), is_whole))
    # Of several sources, the one of such a chart counts.
    chart, values, is_all = max(found, default=("", document, True), key=lambda each: each[0] != "")
    read: tuple[Any, ...] = read_manifests(values, file=file) if isinstance(values, str) else (values,)
    return chart, mapping(next(iter(read), None)), is_all


def _read_strategy(found: Mapping[str, Any], file: str, chart: str) -> tuple[bool, Strategy | None]:
    """Returns whether a document is of the GPU Operator, and the MIG strategy that it gives the plugin's environment; None for none.

    Sources: applyMIGConfiguration in controllers/object_controls.go and the chart's values of NVIDIA/gpu-operator, whose strategy is
    `single` since 2021; templates/daemonset-device-plugin.yml of the plugin's chart.
    """
    if found.get("kind") == "ClusterPolicy":
        said = value_at(found, "spec", "mig", "strategy")
        return True, read_strategy(said or None, f"{file}.spec.mig.strategy")
    parts = (*(found.get(each) for each in _OF_OPERATOR), value_at(found, "devicePlugin", "config"))
    if chart.endswith("gpu-operator") or any(isinstance(each, Mapping) for each in parts):
        said = mapping(found.get("mig")).get("strategy", "single")
        return True, read_strategy(said or None, f"{file}.mig.strategy")
    return False, read_strategy(found.get("migStrategy"), f"{file}.migStrategy")


def read_nodes(nodes: Sequence[Mapping[str, Any]]) -> DevicePlugin | None:
    """How the plugin serves the cluster by the labels of its nodes; not clear where those of GKE leave it open on one of them."""
    found = read_node_labels(map(as_discovered, nodes))
    servings = (
        _serving_of(each) for each in nodes if _ACCELERATOR in each and f"{WHOLE_GPU}.product" not in each
    )
    unclear = next((each.unclear for each in servings if each.unclear), "")
    plugin = replace(found or DevicePlugin(), by_labels=read_nodes)
    return replace(plugin, unclear=f"on some nodes {unclear}") if unclear else found and plugin


def _serving_of(labels: Mapping[str, Any]) -> Serving:
    return read_serving(requirements_of({key: labels[key] for key in SERVING if key in labels}))


def as_discovered(labels: Mapping[str, Any]) -> Mapping[str, Any]:
    """Labels of a node, with those that GPU feature discovery would give it where labels of GKE say the same."""
    name = labels.get(_ACCELERATOR)
    serving = _serving_of(labels)
    if not name or f"{WHOLE_GPU}.product" in labels or serving.unclear:
        return labels
    (product, *others) = products_by_label().get(_ACCELERATOR, {}).get(name, (name,))
    called = name if others else label_of(product)
    found = {f"{WHOLE_GPU}.product": f"{called}-MIG-{serving.profile}" if serving.profile else called}
    if f"{_ACCELERATOR}-count" in labels and not serving.profile:
        found[f"{WHOLE_GPU}.count"] = labels[f"{_ACCELERATOR}-count"]
    if serving.replicas is not None:
        found[f"{WHOLE_GPU}.product"] += "-SHARED"
        found[f"{WHOLE_GPU}.replicas"] = str(serving.replicas.number)
        found[f"{WHOLE_GPU}.sharing-strategy"] = serving.replicas.way
    return {**labels, **found}


def _as_seen(plugin: DevicePlugin, labels: Mapping[str, Any]) -> DevicePlugin:
    """The plugin on a node, whose labels say the profile that the strategy `single` has, and a strategy that no file says.

    It is not clear where they say something else than its configuration.
    """
    seen = read_node_labels([labels])
    if seen is None:
        return plugin
    strategy: Strategy = "single" if seen.profiles else "none"
    if not plugin.says_strategy or plugin.strategy == "single":
        strategy = strategy if plugin.says_strategy else seen.strategy
        plugin = replace(plugin, strategy=strategy, profiles=seen.profiles)
    # GPUs with MIG devices have the label with a zero, however others are shared.
    if seen.profiles == plugin.profiles and labels.get(f"{WHOLE_GPU}.replicas") in (None, "0"):
        return plugin
    here, there = (tell_plugin(each, with_way=True) for each in (seen, plugin))
    unclear = "" if here == there else f"labels of a node say {here}, and its configuration {there}"
    return replace(plugin, unclear=unclear)


class FoundConfig(NamedTuple):
    """The plugin's configuration among the input.

    Args:
        file: Where it stands, or the first of several; empty where there is none.
        plugin: How the plugin serves by it; None where that is not clear.
        is_applied: Whether a chart or the GPU Operator applies it, and it says what `nvidia.com/gpu` is.
    """

    file: str = ""
    plugin: DevicePlugin | None = None
    is_applied: bool = False

    def hold(self, plugin: DevicePlugin) -> DevicePlugin:
        """The plugin as somebody says that it is; not clear where this configuration says another one."""
        own = self.plugin or plugin
        how = own.replicas.get(WHOLE_GPU)
        is_shared = how is not None and not how.renamed and WHOLE_GPU not in plugin.replicas
        is_whole = own.says_strategy and own.strategy != "single" and plugin.strategy == "single"
        if not (is_shared or is_whole):
            return replace(plugin, numbers=plugin.numbers | own.numbers)
        told = f"it is said to be {tell_plugin(plugin)}, and {self.file} says {tell_plugin(own)}"
        return replace(plugin, unclear=told)


def find_plugin_config(
    objects: Iterable[tuple[str, Mapping[str, Any]]], nodes: Iterable[Mapping[str, Any]] = ()
) -> FoundConfig:
    """Finds the plugin's configuration among objects, of which each has its file, and nodes of these labels choose one of several."""
    found = [(file, each) for file, each in objects if _configures(each)]
    maps = [each for _, each in found if each.get("kind") == "ConfigMap"]
    applied = [each for each in found if each[1].get("kind") not in (None, "ConfigMap")]
    # Of maps with one name, as overlays have them, nobody knows which is meant.
    is_one = len({value_at(each, "metadata", "name") for each in maps}) == len(maps)
    labels = list(nodes)
    read = dict[DevicePlugin, tuple[str, Mapping[str, Any]]]()
    for chosen in (applied, found):
        for file, each in chosen if not read else ():
            with suppress(ProblemsError):
                more = maps if is_one and each not in maps else ()
                read.setdefault(read_plugin_configs(each, *more, file=file).serve(labels), (file, each))
    if len(read) != 1:
        return FoundConfig(next(iter([*read.values(), *found]), ("",))[0])
    [(plugin, (file, own))] = read.items()
    if [own] != [each for _, each in applied] or isinstance(read_resource(WHOLE_GPU, plugin), str):
        return FoundConfig(file, plugin)
    chart, values, is_all = _read_release(own, file)
    is_all &= chart != "" or own.get("kind") == "ClusterPolicy"
    is_on = value_at(values.get("spec") or values, "devicePlugin", "enabled") is not False
    return FoundConfig(file, plugin, is_applied=is_all and is_on)


def _configures(document: Mapping[str, Any]) -> bool:
    """True for a configuration of the plugin, and what holds one or deploys the plugin."""
    kind = document.get("kind")
    version = str(document.get("apiVersion"))
    if kind not in (None, "ConfigMap", *(each for each, *_ in _RELEASES)):
        return kind == "ClusterPolicy" and version.startswith("nvidia.com/")
    chart = ""
    values = document
    with suppress(ProblemsError):
        chart, values, _ = _read_release(document, "")
    places = (("data",), ("config", "map"), ("devicePlugin", "config", "data"))
    texts = (str(text) for steps in places for text in mapping(value_at(values, *steps)).values())
    return (not kind and is_plugin_config(document)) or chart != "" or any(map(holds_plugin_config, texts))


def holds_configs(text: str) -> bool:
    """True for a text that is a configuration of the plugin, or values of a chart with one: it names resources and asks for none."""
    with suppress(ProblemsError):
        return "version" in text and all(map(_configures, map(mapping, read_manifests(text, file=""))))
    return False


def find_intel_shares(objects: Iterable[Mapping[str, Any]]) -> int:
    """How many containers Intel's plugin lets share a GPU, the most of what objects that deploy it say; 1 where none says more.

    Source: cmd/gpu_plugin and the operator's GpuDevicePlugin of intel/intel-device-plugins-for-kubernetes, and its chart in intel/helm-charts.
    """
    found: list[Any] = [1]
    for each in objects:
        with suppress(ProblemsError):
            chart, values, _ = _read_release(each, "", _OF_INTEL)
            found += [values.get("sharedDevNum")] if chart else []
        if each.get("kind") == "GpuDevicePlugin":
            found.append(value_at(each, "spec", "sharedDevNum"))
        spec = value_at(each, "spec", "template", "spec") if each.get("kind") == "DaemonSet" else {}
        for _, container in containers_of(mapping(spec)):
            if re.search("gpu[-_]plugin", f"{container.get('name')} {container.get('image')}"):
                words = f"{container.get('command')} {container.get('args')}"
                found += map(int, _SHARED.findall(words))
    return max(int(each) for each in found if re.fullmatch("[0-9]{1,9}", str(each), re.ASCII))


def hold_to_nodes(plugin: DevicePlugin, nodes: Iterable[Mapping[str, Any]]) -> DevicePlugin:
    """The plugin as somebody says that it is; not clear where it is so on no node, by their labels."""
    seen = [each for labels in nodes if (each := read_node_labels([as_discovered(labels)]))]
    told = tell_plugin(plugin)
    here = sorted(set(map(tell_plugin, seen)))
    if not here or told in here:
        return replace(plugin, numbers=plugin.numbers.union(*(each.numbers for each in seen)))
    return replace(plugin, unclear=f"it is said to be {told}, and labels of nodes say {', '.join(here)}")


def tell_plugin(plugin: DevicePlugin, *, with_way: bool = False) -> str:
    """Words for what the plugin serves as `nvidia.com/gpu`."""
    how = plugin.replicas.get(WHOLE_GPU)
    profile = ", ".join(plugin.profiles) or (
        "of a profile that no label says" if plugin.strategy == "single" else ""
    )
    way = f" by {how.way}{', as nvidia.com/gpu.shared' if how.renamed else ''}" if with_way and how else ""
    return tell_device(profile, how) + way
