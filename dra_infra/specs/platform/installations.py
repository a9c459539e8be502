"""Compiles the arguments of an installation to the release of a chart; pure, and all problems at once.

Arguments must be what they must be before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.catalog.charts import Product
from dra_infra.catalog.drivers import ShippedClass, drivers
from dra_infra.catalog.platforms import chart_rules
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.arguments import is_list, is_output, unknown_argument, wrong_type
from dra_infra.specs.config_matching import check_json
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.platform import driver_rules
from dra_infra.specs.platform.driver_rules import check_gpu_cluster, check_kernel_driver, check_kubernetes
from dra_infra.specs.platform.namespaces import ReleaseNamespace, choose_namespace
from dra_infra.specs.platform.releases import ChosenRelease, check_chart_name, choose_release, newest_of_line
from dra_infra.specs.platform.values import (
    DRIVER_EXTRA,
    OPERATOR_EXTRA,
    PLAIN,
    SHARED,
    Settings,
    Values,
    check_value_rules,
    driver_settings,
    join_values,
)
from dra_infra.target import ClusterTarget

_SHAPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "chart": ((str,), "a name, an address or a path"),
    "repository": ((str,), "an address"),
    "keep_crds": ((bool,), "True or False"),
    "values": ((Mapping,), "a mapping, as in a values file"),
    "timeout": ((int,), "a number of seconds"),
    "skip_await": ((bool,), "True or False"),
    "atomic": ((bool,), "True or False"),
    "kernel_driver": ((str,), 'a version, such as "580.95.05"'),
    "dcgm_claims": ((bool,), "True or False"),
}


def check_shapes(
    arguments: Mapping[str, Any], known: Sequence[str]
) -> tuple[Mapping[str, Any], list[Problem]]:
    """The arguments that can be used, and problems `unknown-argument`, `wrong-type`, `invalid-name`."""
    problems: list[Problem] = []
    for name, value in arguments.items():
        if name not in known:
            problems.append(unknown_argument(name, known))
        elif value is not None and is_output(value):
            if name in PLAIN:
                hint = "it decides what is made or checked; values inside may be Outputs"
                problems.append(wrong_type(name, value, "a plain value", hint))
        elif value is not None:
            # Values must be JSON, with Outputs in them, so that Helm can be given them.
            wrong = list(_check_shape(name, value))
            problems += wrong or check_json(name, value, "a value of a chart")
    refused = {problem.path.partition("[")[0] for problem in problems}
    return {name: value for name, value in arguments.items() if str(name)[:80] not in refused}, problems


def _check_shape(name: str, value: object) -> Iterator[Problem]:
    if name == "release_name":
        yield from check_object_name(value, path="release_name")
    elif name == "crds":
        paths = value if is_list(value) else [value]
        if not all(isinstance(each, str) and each for each in paths):  # type: ignore[attr-defined]
            yield wrong_type("crds", value, "a path, an address, or a list of them")
    else:
        types, said = _SHAPES.get(name, ((object,), ""))
        fits = isinstance(value, types) and (bool in types or object in types or not isinstance(value, bool))
        if not fits:
            yield wrong_type(name, value, said)


DRIVER: Final[Product] = "NVIDIA DRA driver"
GPU_OPERATOR: Final[Product] = "GPU Operator"
EXAMPLE_DRIVER: Final[Product] = "DRA example driver"


@dataclass(frozen=True)
class Installation:
    """A release of a chart as helm is told about it.

    Args:
        release: The chart and version.
        chart: What helm is given: a name, an address or a path.
        repository: Where the name is looked up; empty for an address or a path.
        version: As `--version` takes it.
        namespace: Where it goes, with the labels of the Namespace to make.
        values: The values of the chart.
        classes: The DeviceClasses that it brings, as far as that is known, with their drivers.
        warnings: Problems that stop nothing.
    """

    release: ChosenRelease
    chart: str
    repository: str
    version: str
    namespace: ReleaseNamespace
    values: Values
    classes: tuple[tuple[str, ShippedClass], ...]
    warnings: tuple[Problem, ...] = ()


def compile_driver(
    arguments: Mapping[str, Any],
    *,
    target: ClusterTarget,
    line: str = "",
    otherwise: Mapping[str, Any] | None = None,
) -> Installation:
    """The NVIDIA DRA driver.

    Args:
        arguments: Those of `DraDriver`.
        target: The cluster.
        line: Release line where the user names no version.
        otherwise: Arguments that stand where the user writes nothing.

    Raises:
        InvalidSpecError: With every problem of `join_values`, `check_value_rules`, `choose_namespace`, `versions` and
            `driver_rules`.
    """
    release, problems = _choose(DRIVER, arguments, line)
    settings = driver_settings(on_control_plane=driver_rules.keeps_to_control_plane(release))

    def rules(values: Values) -> Iterable[Problem]:
        yield from driver_rules.check_driver_gates(values, release.line, target)
        yield from driver_rules.check_consent(values)
        yield from driver_rules.check_gated_values(values, release.line)
        yield from driver_rules.check_api_version(values, target)
        yield from driver_rules.check_image(values)
        crds = bool(arguments.get("crds"))
        yield from driver_rules.check_upgrade(values, arguments.get("upgrade_from"), with_crds=crds)
        if isinstance(kernel := arguments.get("kernel_driver"), str):
            yield from kernel_driver_of(values, kernel, path="kernel_driver")

    return _compile(
        release,
        settings,
        arguments,
        target=target,
        extra=DRIVER_EXTRA,
        otherwise=otherwise or {},
        problems=problems,
        rules=rules,
        classes=_driver_classes,
    )


def compile_operator(
    arguments: Mapping[str, Any], *, target: ClusterTarget, otherwise: Mapping[str, Any] | None = None
) -> Installation:
    """The GPU Operator.

    With `gpu_cluster=True` the ClusterPolicy is turned off: the two exclude each other. Beside a ClusterPolicy DCGM's
    exporter is given what `name_claims` says.

    Raises:
        InvalidSpecError: As `compile_driver`.
    """
    release, problems = _choose(GPU_OPERATOR, arguments, "")
    cluster = arguments.get("gpu_cluster") is True
    base = dict(otherwise or {})
    if arguments.get("crds"):
        # Two owners of one object would take turns.
        base["upgrade_crds"] = False
    bundled = release.chart.versions.get(release.version)
    line = ".".join((bundled.dra_driver if bundled else "").split(".")[:2])

    def rules(values: Values) -> Iterable[Problem]:
        if values.get("gpuCluster.deployCR") is not True:
            return
        yield from check_gpu_cluster(release, target)
        yield from driver_rules.check_driver_gates(values, line, target, "draDriver.featureGates")

    return _compile(
        release,
        chart_rules(GPU_OPERATOR).arguments,
        arguments,
        target=target,
        extra=OPERATOR_EXTRA,
        otherwise=base,
        problems=problems,
        rules=rules,
        complete=lambda values: driver_rules.name_claims(values, arguments.get("dcgm_claims"), target),
        classes=lambda values: (
            _classes(
                DRIVER,
                line,
                gpus=True,
                compute_domains=values.get("draDriver.computeDomains.enabled") is not False,
            )
            if values.get("gpuCluster.deployCR") is True
            else ()
        ),
        follows={"clusterPolicy.deployCR": False} if cluster else {},
    )


def compile_example_driver(
    arguments: Mapping[str, Any], *, target: ClusterTarget, otherwise: Mapping[str, Any] | None = None
) -> Installation:
    """The example driver, whose devices are pretended.

    Raises:
        InvalidSpecError: As `compile_driver`.
    """
    release, problems = _choose(EXAMPLE_DRIVER, arguments, "")
    return _compile(
        release,
        chart_rules(EXAMPLE_DRIVER).arguments,
        arguments,
        target=target,
        extra=(),
        otherwise=otherwise or {},
        problems=problems,
        rules=lambda _values: (),
        classes=lambda values: tuple(
            (name, shipped)
            for name, shipped in _classes(EXAMPLE_DRIVER, release.line, gpus=True, compute_domains=False)
            if shipped.name == f"{values.get('deviceProfile')}.example.com" and not values.get("driverName")
        ),
    )


def kernel_driver_of(values: Values, kernel_driver: str, *, path: str) -> list[Problem]:
    """Checks that NVIDIA's kernel driver is new enough for these values of the DRA driver."""
    gates = {name: on for name, on in driver_rules.known_gates(values).items() if isinstance(on, bool)}
    domains = values.get(driver_rules.COMPUTE_DOMAINS) is True
    return list(check_kernel_driver(values.release, kernel_driver, gates, compute_domains=domains, path=path))


def _choose(product: Product, arguments: Mapping[str, Any], line: str) -> tuple[ChosenRelease, list[Problem]]:
    """The release, and the newest one with a problem where the user's cannot be found: the rest is still checked."""
    found = choose_release(product, arguments.get("version"), otherwise=newest_of_line(product, line))
    if not isinstance(found, Problem):
        return found, []
    newest = choose_release(product, None)
    assert not isinstance(newest, Problem)  # noqa: S101  (the newest version is in the catalogue)
    return newest, [found]


def _compile(
    release: ChosenRelease,
    settings: Settings,
    arguments: Mapping[str, Any],
    *,
    target: ClusterTarget,
    extra: Sequence[str],
    otherwise: Mapping[str, Any],
    problems: Sequence[Problem],
    rules: Callable[[Values], Iterable[Problem]],
    classes: Callable[[Values], tuple[tuple[str, ShippedClass], ...]],
    follows: Mapping[str, Any] | None = None,
    complete: Callable[[Values], tuple[Values, list[Problem]]] = lambda values: (values, []),
) -> Installation:
    facts = chart_rules(release.product)
    sound, found = check_shapes(arguments, [*settings, *SHARED, *extra])
    found = [*problems, *found, *check_chart_name(release, sound.get("chart"))]
    values, wrong = join_values(
        release, settings, sound, otherwise=otherwise, follows=follows or {}, defaults=facts.defaults
    )
    values, told = complete(values)
    namespace, refused = choose_namespace(sound, values, otherwise=driver_rules.namespace_of(values))
    found += [*wrong, *told, *refused, *check_value_rules(values, facts), *rules(values)]
    if not problems:
        found += check_kubernetes(release, target)
    errors = [problem for problem in found if problem.severity == "error"]
    if errors:
        raise InvalidSpecError(found)
    chart, repository, version = _source(release, sound)
    return Installation(
        release, chart, repository, version, namespace, values, classes(values), tuple(dict.fromkeys(found))
    )


def _source(release: ChosenRelease, arguments: Mapping[str, Any]) -> tuple[str, str, str]:
    """Chart, repository and version as helm takes them."""
    version = release.chart.helm_version(release.version)
    if arguments.get("chart"):
        chart = str(arguments["chart"])
        repository = str(arguments.get("repository") or "")
        # Of a folder or an archive, the version is what lies there.
        local = not repository and "://" not in chart
        return chart, repository, "" if local else version
    repository = str(arguments.get("repository") or release.chart.repository)
    if not repository.startswith("oci://"):
        return release.name, repository, version
    named = repository.rstrip("/")
    return named if named.endswith(f"/{release.name}") else f"{named}/{release.name}", "", version


def _driver_classes(values: Values) -> tuple[tuple[str, ShippedClass], ...]:
    gpus = values.get(driver_rules.GPUS) is True
    domains = values.get(driver_rules.COMPUTE_DOMAINS) is True
    found = _classes(DRIVER, values.release.line, gpus=gpus, compute_domains=domains)
    if values.get("resources.computeDomains.imex.mode") == "hostManaged":
        # No daemons of the driver's own then.
        found = tuple(each for each in found if each[1].selects != "daemon")
    return found


def _classes(
    product: Product, line: str, *, gpus: bool, compute_domains: bool
) -> tuple[tuple[str, ShippedClass], ...]:
    wanted = {True: compute_domains, False: gpus}
    return tuple(
        (name, shipped)
        for name, driver in drivers().items()
        if driver.product == product and wanted[name.startswith("compute-domain")] and line in driver.by_line
        for shipped in driver.by_line[line].classes
    )
