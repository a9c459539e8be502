"""What objects of a program run into on the platform that the same program installs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.charts import Product, charts
from dra_infra.errors import Problem
from dra_infra.model.pod_template_paths import find_holders
from dra_infra.model.program import Program, ProgramObject, ProgramRelease

DRIVER: Final = "gpu.nvidia.com"
EXTENDED: Final = "nvidia.com/gpu"
IMPLICIT: Final = f"deviceclass.resource.kubernetes.io/{DRIVER}"
"""The name that every class has for pods, with or without an `extendedResourceName`."""

_CLAIMS: Final = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}
_CONTAINERS: Final = ("initContainers", "containers")
_VERSION: Final = re.compile(r"(-v?\d[^/]*)?(\.tgz)?/?$")


def check_installed(program: Program) -> Iterator[tuple[int, Problem]]:
    """Problems at objects, with their index: `config-refused-by-webhook`, `extended-resource-not-served`.

    Only what releases of the program say counts; a platform that another program installs is not seen.
    """
    if not program.releases:
        return
    releases = {product: each for each in program.releases if (product := _product_of(each.chart))}
    driver, operator = releases.get("NVIDIA DRA driver"), releases.get("GPU Operator")
    webhook = driver is not None and _at(driver.values, "webhook", "enabled") is True
    cluster = operator is not None and _at(operator.values, "gpuCluster", "deployCR") is True
    unserved = cluster and driver is None and not any(map(_gives_extended, program.objects))
    for index, each in enumerate(program.objects):
        if webhook and each.ref.kind in _CLAIMS:
            yield from ((index, problem) for problem in _check_configs(each))
        if unserved and operator is not None:
            yield from ((index, problem) for problem in _check_pods(each, operator))


def _check_configs(each: ProgramObject) -> Iterator[Problem]:
    """Source: the webhook of the driver 25.12 to 0.5 decodes GpuConfig, MigDeviceConfig and those of ComputeDomains."""
    from dra_infra.catalog.device_configs import configs_of
    from dra_infra.catalog.drivers import drivers

    known = configs_of(DRIVER, list(drivers()[DRIVER].by_line)[-1])
    refused = {name for name, kind in known.kinds.items() if not kind.webhook} if known else set()
    steps = (*_CLAIMS[each.ref.kind], "devices", "config")
    configs = _at(each.manifest, *steps)
    for index, config in enumerate(configs if isinstance(configs, Sequence) else ()):
        kind = _at(config, "opaque", "parameters", "kind")
        if _at(config, "opaque", "driver") == DRIVER and kind in refused:
            yield Problem(
                path=f"{'.'.join(steps)}[{index}].opaque.parameters.kind",
                code="config-refused-by-webhook",
                message=f"the webhook of {DRIVER}, which this program installs, refuses claims with a {kind}",
                hint="give the config to a class, which the webhook does not see, or install the driver without webhook=True",
            )


def _check_pods(each: ProgramObject, operator: ProgramRelease) -> Iterator[Problem]:
    """Source: the classes that a GPUCluster makes have no `extendedResourceName` (GPU Operator 26.7)."""
    for above, holder in find_holders(each.manifest):
        for field in _CONTAINERS:
            found = _at(holder, "spec", field)
            for index, container in enumerate(found if isinstance(found, Sequence) else ()):
                asked = [
                    kind for kind in ("limits", "requests") if _at(container, "resources", kind, EXTENDED)
                ]
                if not asked:
                    continue
                path = f"{above}.spec" if above else "spec"
                yield Problem(
                    path=f"{path}.{field}[{index}].resources.{asked[0]}[{EXTENDED}]",
                    code="extended-resource-not-served",
                    message=f"{operator.component or operator.chart} installs a GPUCluster, whose classes do not serve "
                    f"{EXTENDED}, and no device plugin does: the pod stays pending",
                    hint=f'write "{IMPLICIT}" for it, or make a class with extended_resource_name="{EXTENDED}"',
                )


def _gives_extended(each: ProgramObject) -> bool:
    return each.ref.kind == "DeviceClass" and _at(each.manifest, "spec", "extendedResourceName") == EXTENDED


def _product_of(chart: str) -> Product | None:
    """What a chart installs, by its name: of an address or a path, that is the last part."""
    found = charts().get(_VERSION.sub("", chart).rpartition("/")[2])
    return found.product if found else None


def _at(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
