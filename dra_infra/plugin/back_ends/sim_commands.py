"""Commands for simulated devices: a YAML or JSON file that a person or `dra-infra-plugin sim` writes.

    devices:
      gpu-3: {xid: 79}                        # unhealthy
      gpu-4: {state: gone}
      gpu-5: {state: unmonitored, message: no answer}
    prepare:
      - {claim: ml/trainer, seconds: 5}       # slow
      - {device: gpu-1, error: cannot be reset}
    bindingConditions: [gpu-6]                # devices for which pods wait; "*" is all
    bindings:
      - {claim: ml/trainer}                   # met
      - {claim: ml/other, device: gpu-6, state: failed, message: no room}

A claim is NAMESPACE/NAME or a UID. The functions that change commands touch no file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from dra_infra.errors import PluginError, Problem, Severity
from dra_infra.kubernetes.api.names import is_dns_label, is_dns_subdomain
from dra_infra.plugin.claims import ClaimReference, is_uid
from dra_infra.plugin.disk import LARGEST, Folder, explain_os_errors

EVERY: Final = "*"
"""All devices."""

State = Literal["unhealthy", "gone", "unmonitored"]

_SHOWN: Final = 5
_HOLDS: Final = "what was right before holds until it is right"
_Text = Annotated[str, Strict(), Field(max_length=1024)]
_Name = Annotated[str, Strict(), Field(min_length=1, max_length=253)]


def _is_claim(text: str) -> str:
    namespace, _, name = text.partition("/")
    if text and not is_uid(text) and not (is_dns_label(namespace) and is_dns_subdomain(name)):
        raise PydanticCustomError("claim", "is neither NAMESPACE/NAME nor a UID, and no claim is meant by it")
    return text


def _is_device(text: str) -> str:
    if text not in ("", EVERY) and not is_dns_label(text):
        raise PydanticCustomError("device", "no device can be called so")
    return text


_Claim = Annotated[_Name, AfterValidator(_is_claim)]
_Device = Annotated[_Name, AfterValidator(_is_device)]
_AnyClaim = Annotated[_Text, AfterValidator(_is_claim)]
_AnyDevice = Annotated[_Text, AfterValidator(_is_device)]


class _Entry(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class DeviceFault(_Entry):
    """Fault of a device.

    Args:
        state: Unhealthy has a taint; gone is published no more; unmonitored is of unknown health.
        xid: NVIDIA's number of the error; without one an unhealthy GPU is lost.
        message: For the status of pods.
    """

    state: State = "unhealthy"
    xid: Annotated[int, Strict(), Field(ge=1, le=9999)] | None = None
    message: _Text = ""


class PrepareFault(_Entry):
    """Fault while a claim is prepared; without a claim or device it is for all of them."""

    claim: _AnyClaim = ""
    device: _AnyDevice = ""
    seconds: Annotated[float, Field(ge=0, le=3600)] = 0.0
    error: _Text = ""


class Binding(_Entry):
    """Binding of a device to a claim that the scheduler chose it for; of all its devices where none is named."""

    claim: _Claim
    device: _AnyDevice = ""
    state: Literal["met", "failed"] = "met"
    message: _Text = ""


class Commands(_Entry):
    """All that simulated devices are told."""

    devices: dict[_Device, DeviceFault] = {}
    prepare: tuple[PrepareFault, ...] = ()
    binding_conditions: tuple[_Device, ...] = ()
    bindings: tuple[Binding, ...] = ()


def fail(commands: Commands, device: str, *, xid: int | None = None, message: str = "") -> Commands:
    """A device becomes unhealthy, with an XID or lost.

    Raises:
        PluginError: `sim-commands-malformed`, as all that change commands.
    """
    return _with_fault(commands, device, {"xid": xid, "message": message})


def withdraw(commands: Commands, device: str) -> Commands:
    """A device is gone: it is published no more, and cannot be prepared."""
    return _with_fault(commands, device, {"state": "gone"})


def heal(commands: Commands, device: str = EVERY) -> Commands:
    """A device is as it was, or all are and preparing too."""
    if device == EVERY:
        return _changed(commands, devices={}, prepare=())
    devices = {name: fault for name, fault in commands.devices.items() if name != device}
    return _changed(
        commands, devices=devices, prepare=[each for each in commands.prepare if each.device != device]
    )


def disturb(
    commands: Commands, *, claim: str = "", device: str = "", seconds: float = 0.0, error: str = ""
) -> Commands:
    """Preparing takes longer, or fails, for a claim, for a device, or for all."""
    others = [each for each in commands.prepare if (each.claim, each.device) != (claim, device)]
    added = {"claim": claim, "device": device, "seconds": seconds, "error": error}
    return _changed(commands, prepare=[*others, added])


def hold(commands: Commands, device: str = EVERY) -> Commands:
    """Let pods that get the device wait until it is bound."""
    names = tuple(dict.fromkeys((*commands.binding_conditions, device)))
    return _changed(commands, binding_conditions=names)


def unhold(commands: Commands, device: str = EVERY) -> Commands:
    """Take back `hold` of a device, or of all. Pods that wait already go on to wait: `bind` ends that."""
    if device == EVERY:
        return _changed(commands, binding_conditions=())
    if EVERY in commands.binding_conditions:
        message = f"pods wait for all devices, and {device} is one of them"
        hint = "take it back for all, without a name, and hold those that are to be waited for"
        raise PluginError([malformed("sim", f"bindingConditions: {device}", message, hint=hint)])
    names = [each for each in commands.binding_conditions if each != device]
    return _changed(commands, binding_conditions=names)


def bind(commands: Commands, claim: str, *, device: str = "", failed: str = "") -> Commands:
    """A claim's devices are ready, or never will be for the reason *failed*."""
    others = [each for each in commands.bindings if (each.claim, each.device) != (claim, device)]
    added = {
        "claim": claim,
        "device": device,
        "state": "failed" if failed else "met",
        "message": failed,
    }
    return _changed(commands, bindings=[*others, added])


def is_for(said: str, claim: ClaimReference) -> bool:
    """True where a command that names a claim so, or none, is for this one."""
    return said in ("", claim.uid, f"{claim.namespace}/{claim.name}")


def read_commands(path: Path) -> Commands:
    """The commands of a file; none where there is no file.

    Raises:
        PluginError: `sim-commands-malformed`, `plugin-folder-not-usable`.
    """
    with explain_os_errors("cannot be read", path):
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
        except FileNotFoundError:
            return Commands()
    if len(content) > LARGEST:
        raise PluginError([malformed(path, "", f"it has more than {LARGEST} bytes")])
    try:
        found = yaml.load(content, Loader=yaml.CSafeLoader)
        return Commands.model_validate({} if found is None else found)
    except yaml.YAMLError as error:
        told = " ".join(str(error).split())
        raise PluginError([malformed(path, "", f"it is no YAML: {told[:200]}")]) from error
    except ValidationError as error:
        raise PluginError(_problems(str(path), error)) from error


def write_commands(path: Path, commands: Commands) -> None:
    """Put commands into the place of a file, in one step.

    Raises:
        PluginError: `plugin-folder-not-usable`.
    """
    plain = commands.model_dump(by_alias=True, exclude_defaults=True)
    Folder(path.parent, mode=0o644).replace(
        path.name, (json.dumps(plain, indent=1) + "\n").encode(), settle=True
    )


def malformed(
    path: Path | str,
    where: str,
    message: str,
    *,
    severity: Severity = "error",
    hint: str = _HOLDS,
) -> Problem:
    """Something in the file cannot be done; what is only warned of keeps nothing else from being done."""
    return Problem(
        path=f"{path}: {where}" if where else str(path),
        code="sim-commands-malformed",
        message=message,
        hint=hint,
        severity=severity,
    )


def _with_fault(commands: Commands, device: str, fault: Mapping[str, object]) -> Commands:
    return _changed(commands, devices={**commands.devices, device: fault})


def _changed(commands: Commands, **changes: object) -> Commands:
    try:
        return Commands.model_validate({**dict(commands), **changes})
    except ValidationError as error:
        raise PluginError(_problems("sim", error, hint="nothing was written")) from error


def _problems(path: str, error: ValidationError, hint: str = _HOLDS) -> list[Problem]:
    return [malformed(path, _where(each["loc"]), each["msg"], hint=hint) for each in error.errors()[:_SHOWN]]


def _where(steps: Sequence[str | int]) -> str:
    """A field as the file calls it."""
    first, *others = steps or ("",)
    return ".".join((to_camel(str(first)), *map(str, others)))
