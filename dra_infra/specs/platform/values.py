"""The values of a release: what arguments write, what the user writes beside them, and what stands otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_infra.catalog.chart_values import check_values
from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_output
from dra_infra.specs.platform.releases import ChosenRelease
from dra_infra.specs.platform.settings import Setting

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
        """What the chart reads at *path*: written, else its default; None where that is not known."""
        found = _at(self.tree, path)
        if found is not _MISSING:
            return found
        return self.defaults.get(path) if self.release.knows(path) else None

    def is_written(self, path: str) -> bool:
        """Whether something is written at *path* or below."""
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
        from dra_infra.specs.platform.settings import EXAMPLE, OPERATOR, driver_settings

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
