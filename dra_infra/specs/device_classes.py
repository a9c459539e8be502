"""The spec of device classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dra_infra.catalog.driver_gates import find_unknown_gates
from dra_infra.catalog.drivers import DeviceType, Pins, newest, read_pins
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import CELDeviceSelector, DeviceClass, DeviceClassSpec, DeviceSelector, names
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import driver as driver_is
from dra_infra.specs.arguments import check_driver_name, is_list, shorten, wrong_type
from dra_infra.specs.component_plans import ComponentPlan, PlannedObject, metadata_of
from dra_infra.specs.config_checks import check_class_configs
from dra_infra.specs.config_matching import compile_class_configs
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.object_names import check_metadata, check_object_name
from dra_infra.specs.request_records import compile_selectors
from dra_infra.target import NEWEST_DRIVER, ClusterTarget

NVIDIA_DRIVER = "gpu.nvidia.com"


def read_driver_release(release: str | None) -> Pins:
    """Return the driver releases that are meant; the newest for None.

    Raises:
        InvalidSpecError: `unknown-driver-release`.
    """
    try:
        return read_pins(release or NEWEST_DRIVER)
    except InvalidSpecError as error:
        raise InvalidSpecError(
            [replace(problem, path="driver_release") for problem in error.problems]
        ) from error


def check_known_gates(pins: Pins, gates: Mapping[str, bool] | None) -> list[Problem]:
    """Return a problem for each of *gates* that the pinned release of NVIDIA's driver does not have."""
    unknown = find_unknown_gates(pins.releases[NVIDIA_DRIVER].line, gates or ())
    return [problem.below("driver_gates") for problem in unknown]


def plan_device_class(name: str, arguments: Mapping[str, Any], _target: ClusterTarget) -> ComponentPlan:
    """Turn the arguments of `GpuDeviceClass` into its object.

    Raises:
        InvalidSpecError: With the problems of `compile_class`, and those of names, labels, driver release and gates.
    """
    problems = check_metadata(arguments)
    if arguments["object_name"] is None:
        problems += check_object_name(name, path="name")
    warnings: list[Problem] = []
    try:
        pins = read_driver_release(arguments["driver_release"])
        problems += check_known_gates(pins, arguments["driver_gates"])
        spec = compile_class(
            **{key: arguments[key] for key in ("select", "driver", "configs", "extended_resource_name")},
            pins=pins,
            gates=arguments["driver_gates"],
            warnings=warnings,
        )
    except InvalidSpecError as error:
        problems += error.problems
    if problems:
        raise InvalidSpecError(problems)
    driver = arguments["driver"]
    manifest = {**DeviceClass(spec=spec).to_manifest(), "metadata": metadata_of(name, arguments)}
    return ComponentPlan(
        objects=(PlannedObject(key="DeviceClass", name=name, manifest=manifest),),
        attributes={
            "selects": (driver, "gpu") if driver == NVIDIA_DRIVER else None,
            "configs": tuple(arguments["configs"]),
            "extended_resource_name": arguments["extended_resource_name"],
        },
        warnings=tuple(warnings),
    )


def compile_class(
    select: object = None,
    *,
    driver: object = NVIDIA_DRIVER,
    configs: Sequence[DeviceConfig] = (),
    extended_resource_name: object = None,
    pins: Pins | None = None,
    gates: Mapping[str, bool] | None = None,
    warnings: list[Problem] | None = None,
) -> DeviceClassSpec:
    """Turn a driver and a selector into the spec of a class.

    The first selector is always the driver (for NVIDIA's: its whole GPUs, as in the class that the driver ships), so
    a careless `dra.cel(...)` behind it never reads attributes of another driver's devices: class selectors are
    evaluated in order and stop at the first that is false.

    Args:
        select: What each device must pass beyond being of the driver.
        driver: Name of the DRA driver.
        configs: How the driver sets up devices of the class, unless the claim says otherwise.
        extended_resource_name: What pods may ask for in place of a claim, such as `example.com/h100`.
        pins: The driver releases that are meant; the newest when left out.
        gates: Feature gates that the NVIDIA driver is given; None where they are not known.
        warnings: Gets what is wrong with configs and stops nothing.

    Raises:
        InvalidSpecError: With codes `invalid-name`, `wrong-type`, and those of the selector and the configs.
    """
    found, selectors = compile_selectors(select)
    problems = [
        *check_driver_name(driver),
        *found,
        *_check_extended_resource(extended_resource_name),
    ]
    if not problems and not (is_list(configs) and not configs):
        pins = pins or newest()
        devices = [each for each in pins.devices if each.driver == driver and _is_selected(each)]
        found = check_class_configs(configs, devices or None, pins=pins, gates=gates)
        problems += [problem for problem in found if problem.severity == "error"]
        if warnings is not None:
            warnings += [problem for problem in found if problem.severity == "warning"]
    if problems:
        raise InvalidSpecError(problems)
    own = driver_is(str(driver))
    if driver == NVIDIA_DRIVER:
        own = own & (gpu.type == "gpu")
    first = DeviceSelector(cel=CELDeviceSelector(expression=own.expression()))
    spec = DeviceClassSpec(selectors=[first, *selectors])
    if configs:
        spec = spec.model_copy(update={"config": compile_class_configs(configs)})
    if extended_resource_name:
        spec = spec.model_copy(update={"extended_resource_name": extended_resource_name})
    return spec


def _check_extended_resource(name: object) -> Iterator[Problem]:
    path = "extended_resource_name"
    if name is not None and not isinstance(name, str):
        yield wrong_type(path, name, "a string")
    elif isinstance(name, str) and not names.is_extended_resource_name(name):
        message = f"{shorten(name)} cannot be the name of an extended resource"
        hint = 'write a domain of your own and a name: extended_resource_name="example.com/h100"'
        yield Problem(path=path, code="invalid-extended-resource", message=message, hint=hint)


def _is_selected(device: DeviceType) -> bool:
    """The first selector takes devices of this type: of NVIDIA's only whole GPUs."""
    return device.driver != NVIDIA_DRIVER or device.name == "gpu"
