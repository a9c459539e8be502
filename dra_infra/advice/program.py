"""All rules over all objects of a program, and conflicts with the platform that the same program installs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dra_infra.advice.objects import check_objects, check_on_fleet
from dra_infra.advice.python_hints import in_python
from dra_infra.catalog.charts import chart_name_of, charts
from dra_infra.catalog.device_configs import configs_of
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.errors import Place, Problem, in_reading_order
from dra_infra.kubernetes.api import value_at
from dra_infra.program_objects import Program, ProgramObject, ProgramRelease
from dra_infra.target import ClusterTarget

if TYPE_CHECKING:
    from dra_infra.fleet import Fleet
    from dra_infra.kubernetes.api import DeviceClass


def check_program(
    program: Program,
    *,
    target: ClusterTarget | None = None,
    classes: Iterable[DeviceClass] = (),
    fleet: Fleet | None = None,
    locate: Callable[[int, str], Place | None] | None = None,
    beside: Iterable[Mapping[str, Any]] = (),
) -> tuple[Problem, ...]:
    """Check every object of *program*; in reading order, with the place of the object where the run knows it.

    Of what a chart makes, only what the API server refuses is told: advice is for its author.

    Args:
        program: What a run gave.
        target: The cluster of objects that have none of their own; None takes the stack's setting, else the oldest
            and the newest supported minor.
        classes: DeviceClasses that exist beside those of the program and those that stand in for the cluster's.
        fleet: The hardware that the program is meant for: its classes exist too, and what it does not have the way it
            is set up is told.
        locate: Where a field is written, by the position of its object and its path; None takes the object's place.
        beside: Namespaces and claim templates of the cluster that are not the program's.
    """
    of_objects = find_problems(
        program, target=target, classes=classes, fleet=fleet, locate=locate, beside=beside
    )
    return in_reading_order([*program.problems, *(problem for _, problem in of_objects)])


def find_problems(
    program: Program,
    *,
    target: ClusterTarget | None = None,
    classes: Iterable[DeviceClass] = (),
    fleet: Fleet | None = None,
    locate: Callable[[int, str], Place | None] | None = None,
    beside: Iterable[Mapping[str, Any]] = (),
) -> Iterator[tuple[int | None, Problem]]:
    """Yield each problem of the objects with the position of its object, or None for one of the fleet itself.

    The arguments are those of `check_program`. Problems of the run are not among these: they belong to no object.
    """
    target = target or program.target
    targets = {index: each.target for index, each in enumerate(program.objects) if each.target is not None}
    manifests = [each.manifest for each in program.objects]
    fleet = fleet.with_classes(program.stand_in_classes) if fleet is not None else None
    # Of classes of one name the last counts: what was read of the cluster is newer than what stands in for it.
    classes = (*program.stand_in_classes, *classes, *(fleet.classes if fleet is not None else ()))
    found = check_objects(
        manifests, target, driver=program.driver, classes=classes, targets=targets, beside=beside
    )
    for index, problem in (*found, *check_installed(program)):
        owner = program.objects[index]
        if owner.chart and problem.severity == "warning":
            continue
        if (
            problem.code == "compute-domain-nodes"
            and owner.component
            and owner.component.kind == "NvlinkGroup"
        ):
            # It knows the gates by which the number counts.
            continue
        place = locate(index, problem.path) if locate else owner.place
        worded = in_python(problem) if owner.component else problem
        yield index, worded.below(str(owner.component or owner.ref)).at(place)
    if fleet is not None:
        yield from _on_fleet(program, fleet, target, locate)


def _on_fleet(
    program: Program,
    fleet: Fleet,
    target: ClusterTarget,
    locate: Callable[[int, str], Place | None] | None,
) -> Iterator[tuple[int | None, Problem]]:
    manifests = [each.manifest for each in program.objects]
    for index, problem in check_on_fleet(manifests, fleet, target, driver=program.driver):
        if index is None:
            yield None, problem
            continue
        owner = program.objects[index]
        place = locate(index, problem.path) if locate else owner.place
        yield index, problem.below(str(owner.component or owner.ref)).at(place)


DRIVER: Final = "gpu.nvidia.com"
EXTENDED: Final = "nvidia.com/gpu"
IMPLICIT: Final = f"deviceclass.resource.kubernetes.io/{DRIVER}"
"""The name that every class has for pods, with or without an `extendedResourceName`."""

_CLAIMS: Final = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}
_CONTAINERS: Final = ("initContainers", "containers")


def check_installed(program: Program) -> Iterator[tuple[int, Problem]]:
    """Problems at objects, with their index: `config-refused-by-webhook`, `extended-resource-not-served`.

    Only what releases of the program say counts; a platform that another program installs is not seen.
    """
    if not program.releases:
        return
    releases = {
        charts()[name].product: each
        for each in program.releases
        if (name := chart_name_of(each.chart)) in charts()
    }
    driver, operator = releases.get("NVIDIA DRA driver"), releases.get("GPU Operator")
    webhook = driver is not None and value_at(driver.values, "webhook", "enabled") is True
    cluster = operator is not None and value_at(operator.values, "gpuCluster", "deployCR") is True
    unserved = cluster and driver is None and not any(map(_gives_extended, program.objects))
    for index, each in enumerate(program.objects):
        if webhook and each.ref.kind in _CLAIMS:
            yield from ((index, problem) for problem in _check_configs(each))
        if unserved and operator is not None:
            yield from ((index, problem) for problem in _check_pods(each, operator))


def _check_configs(each: ProgramObject) -> Iterator[Problem]:
    """Source: the webhook of the driver 25.12 to 0.5 decodes GpuConfig, MigDeviceConfig and those of ComputeDomains."""
    known = configs_of(DRIVER, list(drivers()[DRIVER].by_line)[-1])
    refused = {name for name, kind in known.kinds.items() if not kind.webhook} if known else set()
    steps = (*_CLAIMS[each.ref.kind], "devices", "config")
    configs = value_at(each.manifest, *steps)
    for index, config in enumerate(configs if isinstance(configs, Sequence) else ()):
        kind = value_at(config, "opaque", "parameters", "kind")
        if value_at(config, "opaque", "driver") == DRIVER and kind in refused:
            yield Problem(
                path=f"{'.'.join(steps)}[{index}].opaque.parameters.kind",
                code="config-refused-by-webhook",
                message=f"the webhook of {DRIVER}, which this program installs, refuses claims with a {kind}",
                hint="give the config to a class, which the webhook does not see, or install the driver without webhook=True",
            )


def _check_pods(each: ProgramObject, operator: ProgramRelease) -> Iterator[Problem]:
    """Source: the classes that a GPUCluster makes have no `extendedResourceName` (GPU Operator 26.7)."""
    for template in find_pod_templates(each.manifest):
        for field in _CONTAINERS:
            found = template.spec.get(field)
            for index, container in enumerate(found if isinstance(found, Sequence) else ()):
                asked = [
                    kind
                    for kind in ("limits", "requests")
                    if value_at(container, "resources", kind, EXTENDED)
                ]
                if not asked:
                    continue
                yield Problem(
                    path=template.at(f"{field}[{index}].resources.{asked[0]}[{EXTENDED}]"),
                    code="extended-resource-not-served",
                    message=f"{operator.component or operator.chart} installs a GPUCluster, whose classes do not serve "
                    f"{EXTENDED}, and no device plugin does: the pod stays pending",
                    hint=f'write "{IMPLICIT}" for it, or make a class with extended_resource_name="{EXTENDED}"',
                )


def _gives_extended(each: ProgramObject) -> bool:
    named = value_at(each.manifest, "spec", "extendedResourceName")
    return each.ref.kind == "DeviceClass" and named == EXTENDED
