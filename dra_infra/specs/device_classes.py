"""The spec of device classes."""

from __future__ import annotations

from dra_infra.cel import driver as driver_is
from dra_infra.cel import gpu
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.model import names
from dra_infra.model.device_class import CELDeviceSelector, DeviceClassSpec, DeviceSelector
from dra_infra.specs.claims import compile_selectors

NVIDIA_DRIVER = "gpu.nvidia.com"


def compile_class(select: object = None, *, driver: object = NVIDIA_DRIVER) -> DeviceClassSpec:
    """Turn a driver and a selector into the spec of a class.

    The first selector is always the driver (for NVIDIA's: its whole GPUs, as in the class that the driver ships), so
    a careless `dra.cel(...)` behind it never reads attributes of another driver's devices: class selectors are
    evaluated in order and stop at the first that is false.

    Args:
        select: What each device must pass beyond being of the driver.
        driver: Name of the DRA driver.

    Raises:
        InvalidSpecError: With codes `invalid-name`, `wrong-type`, and those of the selector.
    """
    problems: list[Problem] = []
    if not isinstance(driver, str) or not names.is_dns_subdomain(driver) or len(driver) > names.LABEL_LENGTH:
        problems.append(
            Problem(
                path="driver",
                code="invalid-name",
                message=f"{driver!r} is not the name of a DRA driver",
                hint='driver names are DNS subdomains of at most 63 bytes, such as "gpu.nvidia.com"',
            )
        )
    found, selectors = compile_selectors(select)
    problems += found
    if problems:
        raise InvalidSpecError(problems)
    own = driver_is(str(driver))
    if driver == NVIDIA_DRIVER:
        own = own & (gpu.type == "gpu")
    first = DeviceSelector(cel=CELDeviceSelector(expression=own.expression()))
    return DeviceClassSpec(selectors=[first, *selectors])
