"""Helm values of a release: written by arguments, by the user beside them, or else defaults.

Settings say which argument writes which values of a chart. What charts refuse of values whose keys and types are
right are rules kept as data (`chart_rules.yaml`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dra_infra.catalog.charts import check_values
from dra_infra.catalog.platforms import ANY, ChartRules, matrix
from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_list, is_output, shorten
from dra_infra.specs.platform.releases import ChosenRelease

SHARED: Final = (
    "version",
    "chart",
    "repository",
    "release_name",
    "namespace",
    "create_namespace",
    "namespace_labels",
    "crds",
    "keep_crds",
    "values",
    "timeout",
    "skip_await",
    "atomic",
)
"""Arguments of every installation that are no values of its chart."""

PLAIN: Final = frozenset(
    {"version", "upgrade_from", "chart", "create_namespace", "crds", "keep_crds", "values", "gates"}
    | {"gpus", "compute_domains", "device_plugin", "driver", "gpu_cluster", "controller_node_selector"}
)
"""Arguments that decide what is made or checked: no Pulumi Outputs, though their leaves may be."""


class Setting(NamedTuple):
    """The paths of the values that an argument writes, and how it writes them."""

    paths: tuple[str, ...]
    write: Callable[[Any], Any] | None = None

    def written(self, value: Any) -> Any:
        """The value of the chart."""
        return self.write(value) if self.write else value


def _to(*paths: str, write: Callable[[Any], Any] | None = None) -> Setting:
    return Setting(paths, write)


def _secrets(names: Any) -> Any:
    """Names of Secrets as references to them."""
    return [{"name": each} if isinstance(each, str) else each for each in names] if is_list(names) else names


def _affinity(labels: Any) -> Any:
    """An affinity that takes the place of the chart's own: Helm replaces lists and merges mappings."""
    if not isinstance(labels, Mapping):
        return labels
    wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _eviction(label: Any) -> Any:
    return [{"name": matrix().driver.eviction_variable, "value": label}]


_DRIVER: Final[Mapping[str, Setting]] = {
    "gpus": _to("resources.gpus.enabled"),
    "compute_domains": _to("resources.computeDomains.enabled"),
    "gpu_resources_enabled_override": _to("gpuResourcesEnabledOverride"),
    "nvidia_driver_root": _to("nvidiaDriverRoot"),
    "gates": _to("featureGates"),
    "consumable_shares": _to("consumableShares"),
    "imex_mode": _to("resources.computeDomains.imex.mode"),
    "gpu_clique_label": _to("kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled"),
    "resource_api_version": _to("resourceApiVersion"),
    "log_verbosity": _to("logVerbosity"),
    "image_pull_secrets": _to("imagePullSecrets", write=_secrets),
    "priority_class_name": _to("kubeletPlugin.priorityClassName", "controller.priorityClassName"),
    "plugin_node_selector": _to("kubeletPlugin.nodeSelector"),
    "plugin_tolerations": _to("kubeletPlugin.tolerations"),
    "controller_node_selector": _to("controller.nodeSelector"),
    "controller_tolerations": _to("controller.tolerations"),
    "controller_replicas": _to("controller.replicas"),
    "network_policies": _to("kubeletPlugin.networkPolicy.enabled", "controller.networkPolicy.enabled"),
    "webhook": _to("webhook.enabled"),
    "webhook_failure_policy": _to("webhook.failurePolicy"),
    "webhook_tls_mode": _to("webhook.tls.mode"),
    "webhook_issuer_type": _to("webhook.tls.certManager.issuerType"),
    "webhook_issuer_name": _to("webhook.tls.certManager.issuerName"),
    "webhook_secret_name": _to("webhook.tls.secret.name"),
    "webhook_ca_bundle": _to("webhook.tls.secret.caBundle"),
    "name_override": _to("nameOverride"),
    "allow_default_namespace": _to("allowDefaultNamespace"),
}

OPERATOR: Final[Mapping[str, Setting]] = {
    "device_plugin": _to("devicePlugin.enabled"),
    "driver": _to("driver.enabled"),
    "kernel_driver": _to("driver.version"),
    "kernel_module_type": _to("driver.kernelModuleType"),
    "nvidia_driver_crd": _to("driver.nvidiaDriverCRD.enabled"),
    "driver_install_dir": _to("hostPaths.driverInstallDir"),
    "eviction_label": _to("driver.manager.env", write=_eviction),
    "toolkit": _to("toolkit.enabled"),
    "toolkit_install_dir": _to("toolkit.installDir"),
    "toolkit_env": _to("toolkit.env"),
    "cdi": _to("cdi.enabled"),
    "mig_strategy": _to("mig.strategy"),
    "mig_manager": _to("migManager.enabled"),
    "mig_config": _to("migManager.config.default"),
    "gpu_feature_discovery": _to("gfd.enabled"),
    "node_feature_discovery": _to("nfd.enabled"),
    "dcgm_exporter": _to("dcgmExporter.enabled"),
    "service_monitor": _to("dcgmExporter.serviceMonitor.enabled"),
    "gpu_cluster": _to("gpuCluster.deployCR"),
    "gates": _to("draDriver.featureGates"),
    "compute_domains": _to("draDriver.computeDomains.enabled"),
    "daemonset_tolerations": _to("daemonsets.tolerations"),
    "operator_node_selector": _to("operator.nodeSelector"),
    "operator_tolerations": _to("operator.tolerations"),
    "upgrade_crds": _to("operator.upgradeCRD"),
}

EXAMPLE: Final[Mapping[str, Setting]] = {
    "profile": _to("deviceProfile"),
    "driver_name": _to("driverName"),
    "devices_per_node": _to("kubeletPlugin.numDevices"),
    "partitions_per_gpu": _to("kubeletPlugin.gpuPartitions"),
    "multiple_allocations": _to("gpuAllowMultipleAllocations"),
    "device_status": _to("gpuDeviceStatus"),
    "binding_conditions": _to("kubeletPlugin.bindingConditions"),
    "extended_resource_name": _to("deviceClass.extendedResourceName"),
    "resource_quota": _to("resourceQuota.enabled"),
    "webhook": _to("webhook.enabled"),
    "image_pull_secrets": _to("imagePullSecrets", write=_secrets),
    "plugin_node_selector": _to("kubeletPlugin.nodeSelector"),
    "plugin_tolerations": _to("kubeletPlugin.tolerations"),
    "allow_default_namespace": _to("allowDefaultNamespace"),
}

DRIVER_EXTRA: Final = ("upgrade_from", "kernel_driver")
"""Arguments of the DRA driver that are no values either."""


def driver_settings(*, on_control_plane: bool) -> Mapping[str, Setting]:
    """Values of the chart for the arguments of the DRA driver.

    Args:
        on_control_plane: Whether the chart by default keeps the controller to control plane nodes: a node selector
            would have to hold beside that, so it is written as the affinity instead.
    """
    if not on_control_plane:
        return _DRIVER
    return {**_DRIVER, "controller_node_selector": _to("controller.affinity", write=_affinity)}


_MISSING: Final = object()


@dataclass(frozen=True)
class Values:
    """The values of a release.

    Args:
        release: The chart.
        tree: As helm gets them; leaves may be Pulumi Outputs.
        given: What the user wrote under `values`.
        arguments: Path of a value to the argument that wrote it.
        defaults: What the chart takes where nothing is written, as far as rules look at it.
    """

    release: ChosenRelease
    tree: Mapping[str, Any]
    given: Mapping[str, Any]
    arguments: Mapping[str, str]
    defaults: Mapping[str, Any]

    def get(self, path: str) -> Any:
        """The value at *path*: written, else the chart's default; None where that is not known."""
        found = _at(self.tree, path)
        if found is not _MISSING:
            return found
        return self.defaults.get(path) if self.release.knows(path) else None

    def is_written(self, path: str) -> bool:
        """A value is written at *path* or below."""
        return _at(self.tree, path) is not _MISSING

    def where(self, path: str) -> str:
        """The user's name of a path: an argument, or `values...`."""
        for written, argument in self.arguments.items():
            if path == written:
                return argument
            if path.startswith(f"{written}."):
                return f"{argument}.{path[len(written) + 1 :]}"
        return self._argument_of(path) if _at(self.given, path) is _MISSING else f"values.{path}"

    def _argument_of(self, path: str) -> str:

        tables = {
            "GPU Operator": OPERATOR,
            "DRA example driver": EXAMPLE,
            "NVIDIA DRA driver": driver_settings(on_control_plane=False),
        }
        table = tables[self.release.product]
        return next((name for name, setting in table.items() if path in setting.paths), f"values.{path}")


def join_values(
    release: ChosenRelease,
    settings: Mapping[str, Setting],
    arguments: Mapping[str, Any],
    *,
    otherwise: Mapping[str, Any],
    follows: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> tuple[Values, list[Problem]]:
    """The values of a release from all that is written.

    Args:
        release: The chart.
        settings: What the arguments write.
        arguments: The user's, `values` among them.
        otherwise: Arguments that stand where the user writes neither them nor their values.
        follows: Path to value of what follows from other arguments, where the user does not write it.
        defaults: Of the chart.

    Returns:
        The values, and problems at arguments: `wrong-type`, `unknown-chart-value`, `chart-value-type`,
        `value-set-twice`, and the warning `values-not-known`.
    """
    problems: list[Problem] = []
    typed: dict[str, Any] = {}
    named: dict[str, str] = {}
    for argument, setting in settings.items():
        value = arguments.get(argument)
        if value is None:
            continue
        problem = _check_argument(release, argument, setting, value)
        if problem:
            problems.append(problem)
            continue
        for path in setting.paths:
            _put(typed, path, setting.written(value))
            named[path] = argument
    values = arguments.get("values")
    given: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
    found = check_values(release.name, release.version, given)
    problems += [each.below("values") if each.path else replace(each, path="version") for each in found]
    problems += _twice(typed, given, named)
    base: dict[str, Any] = {}
    for argument, value in otherwise.items():
        setting = settings[argument]
        known = [path for path in setting.paths if release.knows(path)]
        for path in known if arguments.get(argument) is None else ():
            _put(base, path, setting.written(value))
    for path, value in follows.items():
        _put(base, path, value)
    return Values(release, over(base, over(typed, given)), given, named, defaults), problems


def over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """*top* laid over *base*, mapping by mapping, as Helm does."""
    joined = dict(base)
    for key, value in top.items():
        below = joined.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        joined[key] = over(below, value) if both else value  # type: ignore[arg-type]  # both says so
    return joined


def _check_argument(release: ChosenRelease, argument: str, setting: Setting, value: object) -> Problem | None:
    if is_output(value):
        return None
    version = release.version if release.types else release.chart.newest
    path = setting.paths[0]
    nested: dict[str, Any] = {}
    _put(nested, path, setting.written(value))
    for found in check_values(release.name, version, nested):
        if found.code == "chart-value-type":
            return replace(found, path=argument, code="wrong-type", hint="")
        if release.types:
            return replace(found, path=argument)
    return None


def _twice(
    typed: Mapping[str, Any], given: Mapping[str, Any], named: Mapping[str, str], above: str = ""
) -> Iterator[Problem]:
    for key, value in given.items():
        path = f"{above}.{key}" if above else str(key)
        if key not in typed:
            continue
        if isinstance(value, Mapping) and isinstance(typed[key], Mapping):
            yield from _twice(typed[key], value, named, path)
            continue
        argument = next(
            name
            for each, name in named.items()
            if f"{each}.".startswith(f"{path}.") or path.startswith(f"{each}.")
        )
        yield Problem(
            path=f"values.{path}",
            code="value-set-twice",
            message=f"{path} is written here and by the argument {argument}",
            hint=f"keep one: the argument {argument}, which is checked more closely",
        )


def _at(tree: Any, path: str) -> Any:
    for key in path.split("."):
        if is_output(tree):
            return tree
        if not isinstance(tree, Mapping) or key not in tree:
            return _MISSING
        tree = tree[key]
    return tree


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for key in above:
        tree = tree.setdefault(key, {})
    tree[last] = value


def check_value_rules(values: Values, rules: ChartRules) -> Iterator[Problem]:
    """Problems at what the user wrote: `unsupported-value`, `chart-template-fails`, `chart-value-unused`."""
    yield from _check_choices(values, rules)
    for rule in rules.rules:
        if not _holds(values, rule.when, unknown=False) or (
            rule.unless and _holds(values, rule.unless, unknown=True)
        ):
            continue
        written = [path for path in rule.when if values.is_written(path)]
        yield Problem(
            path=values.where((written or list(rule.when))[-1]),
            code="chart-template-fails",
            message=rule.because,
            hint=rule.hint,
        )
    for each in rules.ignored:
        if values.is_written(each.below) and not _holds(values, each.unless, unknown=True):
            written = [path for path in values.arguments if path.startswith(f"{each.below}.")]
            for path in written or [each.below]:
                yield Problem(
                    path=values.where(path),
                    code="chart-value-unused",
                    message=f"nothing reads {path}: {each.because}",
                    hint=each.hint,
                )


def _check_choices(values: Values, rules: ChartRules) -> Iterator[Problem]:
    for path, choices in rules.choices.items():
        value = values.get(path) if values.is_written(path) else None
        if not isinstance(value, str) or value in choices:
            continue
        near = difflib.get_close_matches(value[:80], choices, n=1, cutoff=0.5)
        every = ", ".join(f'"{choice}"' for choice in choices)
        yield Problem(
            path=values.where(path),
            code="unsupported-value",
            message=f"{shorten(value)} is not a value that {path} can have",
            hint=f'did you mean "{near[0]}"? it can be {every}' if near else f"it can be {every}",
        )


def _holds(values: Values, conditions: Mapping[str, Any], *, unknown: bool) -> bool:
    """All conditions hold; *unknown* is the answer for a value that is only known later."""
    return all(_meets(values.get(path), wanted, unknown=unknown) for path, wanted in conditions.items())


def _meets(value: object, wanted: object, *, unknown: bool) -> bool:
    if is_output(value):
        return unknown
    if wanted == ANY:
        return bool(value)
    if isinstance(wanted, list):
        return value in wanted
    return type(value) is type(wanted) and value == wanted
