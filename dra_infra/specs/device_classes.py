"""The spec of device classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dra_infra.catalog.drivers import DeviceType, Pins, newest
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.device_class import CELDeviceSelector, DeviceClassSpec, DeviceSelector
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import driver as driver_is
from dra_infra.specs.arguments import check_driver_name, is_list, shorten, wrong_type
from dra_infra.specs.config_checks import check_class_configs
from dra_infra.specs.config_matching import compile_class_configs
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.request_records import compile_selectors

NVIDIA_DRIVER = "gpu.nvidia.com"


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
