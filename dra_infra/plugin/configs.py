"""Opaque parameters of a claim, decoded as the real drivers do when a pod starts, with the drivers' defaults.

Each device gets one config, the last that is for it, and gets it whole: fields are not merged. Source:
`getConfigResultsMap`, `GetOpaqueDeviceConfigs` and `Normalize` in cmd/gpu-kubelet-plugin/device_state.go and
api/nvidia.com/resource/v1beta1 of the NVIDIA DRA driver, 25.3 to 0.5; cmd/dra-example-kubeletplugin/state.go of
Kubernetes' example driver.

Defaults are what a driver takes where a config says nothing (nvidia driver: `Default...Config` and `Normalize`;
nothing is merged).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.config_parameters import Fault, check_parameters
from dra_infra.catalog.device_configs import configs_of, is_strict
from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.drivers import Pins, drivers
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim, ClaimDevice

_NVIDIA: Final = "gpu.nvidia.com"
_EXAMPLE: Final = "gpu.example.com"
_GATE: Final = "TimeSlicingSettings"

_ALWAYS_SLICED: Final = "25.3"
"""The line that has no gates, and sets slices of time on every whole GPU."""

_SLICED_WITH_GATE: Final = frozenset({"25.8", "25.12"})
"""Lines that do so where the gate TimeSlicingSettings is on; 0.4.1 and newer touch nothing."""

_WITHOUT_IOMMU: Final = frozenset({"25.12"})
"""Lines in which a VfioDeviceConfig has no fields."""

_SLICED: Final = {"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Default"}}}


def built_in(driver: str, line: str, type_: str, gates: Mapping[str, bool] | None) -> Mapping[str, Any]:
    """Built-in parameters of a device that no config is for."""
    if driver == _EXAMPLE or (driver == _NVIDIA and type_ == "gpu" and _slices(line, gates)):
        return _SLICED
    return {}


def with_defaults(
    driver: str,
    line: str,
    kind: str,
    type_: str,
    values: Mapping[str, Any],
    gates: Mapping[str, bool] | None,
) -> Mapping[str, Any]:
    """A config with what its driver fills in."""
    if kind == "VfioDeviceConfig" and line not in _WITHOUT_IOMMU:
        iommu = {"backendPolicy": "LegacyOnly", "enableAPIDevice": False, **_said(values.get("iommu"))}
        return {**values, "iommu": iommu}
    if kind not in ("GpuConfig", "MigDeviceConfig"):
        return values
    sharing = _said(values.get("sharing"))
    if not sharing:
        return built_in(driver, line, type_, gates)
    blocks: dict[str, Any] = {}
    strategy = sharing.get("strategy")
    if strategy == "TimeSlicing" and kind == "GpuConfig":
        blocks["timeSlicingConfig"] = {"interval": "Default"} | _said(sharing.get("timeSlicingConfig"))
    elif strategy == "MPS":
        blocks["mpsConfig"] = _said(sharing.get("mpsConfig"))
    elif strategy == "SpacePartitioning":
        blocks["spacePartitioningConfig"] = {"partitionCount": 1} | _said(
            sharing.get("spacePartitioningConfig")
        )
    return {**values, "sharing": {**sharing, **blocks}}


def _slices(line: str, gates: Mapping[str, bool] | None) -> bool:
    if line == _ALWAYS_SLICED:
        return True
    on = gates is not None and _GATE in gates_of(line) and gate_states(line, gates)[_GATE]
    return line in _SLICED_WITH_GATE and on


def _said(value: Any) -> dict[str, Any]:
    """The fields of an object that are there: null is as good as nothing."""
    found = value if isinstance(value, Mapping) else {}
    return {name: each for name, each in found.items() if each is not None}


_DECODING: Final = frozenset(
    {"config-kind-not-known", "config-field-not-known", "config-device-type", "invalid-parameters"}
)
"""Codes found before anybody looks at a config's values: they fail a claim, whether the config counts or not."""

_INDEXED: Final = "defaultPerDevicePinnedMemoryLimit"


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveConfig:
    """The config that is in effect for a device.

    Args:
        kind: Such as GpuConfig; empty where such devices have no config.
        values: The parameters with their defaults, without apiVersion and kind.
        written: The text that decided; empty for the driver's default.
    """

    kind: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    written: str = ""

    @property
    def strategy(self) -> str:
        """TimeSlicing, MPS or SpacePartitioning; empty where nothing is shared."""
        return str(self._sharing("strategy") or "")

    @property
    def interval(self) -> str:
        """Default, Short, Medium or Long, where slices of time are set."""
        return str(self._sharing("timeSlicingConfig", "interval") or "")

    @property
    def partition_count(self) -> int | None:
        """The example driver's number of parts, where it is said."""
        count = self._sharing("spacePartitioningConfig", "partitionCount")
        return None if count is None else int(count)

    @property
    def mps(self) -> Mapping[str, Any]:
        """Limits of MPS."""
        found = self._sharing("mpsConfig")
        return found if isinstance(found, Mapping) else {}

    def _sharing(self, *path: str) -> Any:
        value: Any = self.values.get("sharing")
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


class ConfigDecoder:
    """A driver's decoder.

    Args:
        driver: Whose kinds are decoded, a name of the catalogue; of any other driver every JSON object counts.
        line: Its release line; None for the newest.
        gates: Feature gates of the driver, in which a gate that is not named has its default; None where they are not
            known, and nothing is refused for a gate.
    """

    def __init__(
        self, driver: str, *, line: str | None = None, gates: Mapping[str, bool] | None = None
    ) -> None:
        self._driver = driver
        self._gates = gates
        known = drivers().get(driver)
        release = None
        if known:
            release = known.by_line[line] if line else known.newest
        self._pins = Pins({driver: release} if release else {})
        self._line = release.line if release else ""
        configs = configs_of(driver, release.line) if release else None
        self._kinds = configs.kinds if configs else None

    def decode(self, claim: Claim, type_of: Callable[[str], str]) -> tuple[EffectiveConfig, ...]:
        """Decode the config that is in effect for each device of a claim, in its order.

        Args:
            claim: The claim.
            type_of: The catalogue's type of a device, by its name: gpu, mig, vfio.

        Raises:
            PluginError: `config-kind-not-known`, `config-field-not-known`, `config-value`, `config-conflict`,
                `config-device-type`, `config-needs-gate`, `driver-gate-conflict`, `invalid-parameters`, `value-too-long`;
                all of the claim at once.
        """
        problems: list[Problem] = []
        effective = []
        for device in claim.devices:
            found, told = self._of_device(f"{claim}: device {device.device}", device, type_of(device.device))
            effective.append(found)
            problems += told
        if not problems:
            problems = list(self._check_together(claim, effective))
        if problems:
            raise PluginError(problems)
        return tuple(effective)

    def _of_device(self, path: str, device: ClaimDevice, type_: str) -> tuple[EffectiveConfig, list[Problem]]:
        chosen = EffectiveConfig()
        problems: list[Problem] = []
        # The last one counts, so it is asked first.
        named = device.named or (False,) * len(device.configs)
        for text, is_named in zip(reversed(device.configs), reversed(named), strict=True):
            parameters, faults = self._read(text)
            kind = str(parameters.get("kind", ""))
            fits = self._kinds is None or (kind in self._kinds and type_ in self._kinds[kind].devices)
            counts = not chosen.written and fits
            if counts:
                chosen = EffectiveConfig(
                    kind=kind, values=self._completed(kind, type_, parameters), written=text
                )
            if is_named and not fits and not chosen.written and not faults:
                message = f"a {kind} is not for such a device, and names its request or comes with its class"
                hint = "select one type of device, or leave requests of the config out"
                faults = [Fault((), "config-device-type", message, hint)]
            problems += [
                _problem(path, kind, fault)
                for fault in faults
                if fault.severity == "error" and (counts or fault.code in _DECODING)
            ]
        if not chosen.written:
            kind = next((name for name, each in (self._kinds or {}).items() if type_ in each.devices), "")
            chosen = EffectiveConfig(kind=kind, values=built_in(self._driver, self._line, type_, self._gates))
        return chosen, problems

    def _read(self, text: str) -> tuple[Mapping[str, Any], list[Fault]]:
        repeated: list[str] = []

        def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
            names = [name for name, _ in found]
            repeated.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
            return dict(found)

        try:
            parameters = json.loads(text, object_pairs_hook=pairs)
        except (ValueError, RecursionError):
            return {}, [Fault((), "invalid-parameters", "the config is no JSON", "write an object")]
        faults = check_parameters(self._driver, parameters, self._pins, self._gates)
        if repeated and self._kinds is not None and is_strict(self._driver, self._line):
            message = f"the config has the field {repeated[0][:80]!r} twice"
            faults.append(Fault((), "invalid-parameters", message, "leave one of them out"))
        return (parameters if isinstance(parameters, Mapping) else {}), faults

    def _completed(self, kind: str, type_: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        values = {name: value for name, value in parameters.items() if name not in ("apiVersion", "kind")}
        return with_defaults(self._driver, self._line, kind, type_, values, self._gates)

    def _check_together(self, claim: Claim, effective: list[EffectiveConfig]) -> Iterator[Problem]:
        groups = {each.written: each for each in effective}
        for written, config in groups.items():
            count = sum(each.written == written for each in effective)
            limits = config.mps.get(_INDEXED) or {}
            for key in limits if isinstance(limits, Mapping) else ():
                if str(key).lstrip("+").isdecimal() and int(key) >= count:
                    message = f"{key} is no index of the {count} devices that share the config"
                    fault = Fault(
                        ("sharing", "mpsConfig", _INDEXED), "config-value", message, "indexes count from 0"
                    )
                    yield _problem(str(claim), config.kind, fault)
        for name, kind in (self._kinds or {}).items():
            texts = {each.written for each in effective if each.kind == name}
            if kind.one_per_claim and len(texts) > 1:
                message = (
                    f"its devices come under {len(texts)} configs of this kind, and at most one is supported"
                )
                hint = f"give the claim one {name} without requests, or use several claims"
                yield _problem(str(claim), name, Fault((), "config-conflict", message, hint))


def _problem(path: str, kind: str, fault: Fault) -> Problem:
    place = ".".join((kind or "config", *fault.fields))
    hint = f"write {fault.fields[-1]}: {json.dumps(fault.value)}" if fault.value is not None else fault.hint
    return Problem(path=f"{path}: {place}", code=fault.code, message=fault.message, hint=hint)
