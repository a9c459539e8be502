"""Helm values of a release: written by arguments, by the user beside them, or else defaults.

Which argument writes which values of a chart, and what charts refuse of values whose keys and types are right, is kept
as data (`chart_rules.yaml`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_infra.catalog.charts import check_values
from dra_infra.catalog.platforms import ANY, ChartRules, chart_rules, matrix
from dra_infra.errors import Problem
from dra_infra.output.wording import nearest
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
    | {"dcgm_claims"}
)
"""Arguments that decide what is made or checked: no Pulumi Outputs, though their leaves may be."""


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


_AFFINITY: Final = "controller.affinity"
_SHAPED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "imagePullSecrets": _secrets,
    "driver.manager.env": _eviction,
    _AFFINITY: _affinity,
}
"""Values of another shape than the argument that writes them, by their paths."""

DRIVER_EXTRA: Final = ("upgrade_from", "kernel_driver")
"""Arguments of the DRA driver that are no values either."""

OPERATOR_EXTRA: Final = ("dcgm_claims",)
"""The same of the operator."""

Settings = Mapping[str, tuple[str, ...]]
"""Arguments, each with the paths of the values that it writes."""


def driver_settings(*, on_control_plane: bool) -> Settings:
    """Values of the chart for the arguments of the DRA driver.

    Args:
        on_control_plane: Whether the chart by default keeps the controller to control plane nodes: a node selector
            would have to hold beside that, so it is written as the affinity instead.
    """
    settings = chart_rules("NVIDIA DRA driver").arguments
    return {**settings, "controller_node_selector": (_AFFINITY,)} if on_control_plane else settings


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
        if _at(self.given, path) is _MISSING:
            for argument, paths in chart_rules(self.release.product).arguments.items():
                if path in paths:
                    return argument
        return f"values.{path}"


def join_values(
    release: ChosenRelease,
    settings: Settings,
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
    for argument, paths in settings.items():
        value = arguments.get(argument)
        if value is None:
            continue
        if problem := _check_argument(release, argument, paths[0], value):
            problems.append(problem)
            continue
        for path in paths:
            _put(typed, path, _shaped(path, value))
            named[path] = argument
    values = arguments.get("values")
    given: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
    found = check_values(release.name, release.version, given)
    problems += [each.below("values") if each.path else replace(each, path="version") for each in found]
    problems += _twice(typed, given, named)
    base: dict[str, Any] = {}
    for argument, value in otherwise.items():
        for path in settings[argument]:
            if release.knows(path) and arguments.get(argument) is None:
                _put(base, path, _shaped(path, value))
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


def _shaped(path: str, value: Any) -> Any:
    """The value of the chart at *path* for that of an argument."""
    return _SHAPED[path](value) if path in _SHAPED else value


def _check_argument(release: ChosenRelease, argument: str, path: str, value: object) -> Problem | None:
    if is_output(value):
        return None
    version = release.version if release.types else release.chart.newest
    nested: dict[str, Any] = {}
    _put(nested, path, _shaped(path, value))
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
        near = nearest(value, choices, cutoff=0.5)
        every = ", ".join(f'"{choice}"' for choice in choices)
        yield Problem(
            path=values.where(path),
            code="unsupported-value",
            message=f"{shorten(value)} is not a value that {path} can have",
            hint=f'did you mean "{near}"? it can be {every}' if near else f"it can be {every}",
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
