"""Devices as commands have them: unhealthy with a taint, gone, waiting to be bound.

Keys of taints and the XIDs that count as none are those of the NVIDIA driver's gate NVMLDeviceHealthCheck (0.4 and
newer); of drivers that have no such taint the key is ours.

The file of commands is looked at now and then, which costs less than a thousandth of a processor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import DeviceTaint
from dra_infra.plugin.back_end import Health, Inventory
from dra_infra.plugin.back_ends.sim_commands import EVERY, Commands, DeviceFault, is_for, read_commands
from dra_infra.plugin.back_ends.sim_node import NVIDIA, SimulatedNode
from dra_infra.plugin.claims import Claim

_NAMED: Final = 3
"""Devices that a hint has."""

IGNORED_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors of programs, not of the GPU."""

BINDING_CONDITION: Final = "BindingConditions"
BINDING_FAILURE_CONDITION: Final = "BindingFailureConditions"
"""Conditions of the example driver (chart value `kubeletPlugin.bindingConditions`, from 0.4 on)."""


def apply(node: SimulatedNode, commands: Commands, withdrawn: frozenset[str] = frozenset()) -> Inventory:
    """Inventory of the node with the commands applied, and without devices that are *withdrawn* for another reason."""
    devices = []
    health = {}
    gone = withdrawn | gone_devices(node, commands)
    for name, device in node.devices.items():
        if name in gone:
            continue
        changes: dict[str, object] = {}
        if fault := _fault_of(node, commands, name):
            health[name] = _health(node, fault)
            if taint := _taint(node, fault):
                changes["taints"] = [*(device.taints or ()), taint]
        if EVERY in commands.binding_conditions or name in commands.binding_conditions:
            changes["binding_conditions"] = [BINDING_CONDITION]
            changes["binding_failure_conditions"] = [BINDING_FAILURE_CONDITION]
        devices.append(device.changed(changes) if changes else device)
    return Inventory(devices=tuple(devices), counters=node.counters, health=health)


def gone_devices(node: SimulatedNode, commands: Commands) -> frozenset[str]:
    """Devices that commands took away, with all that is on the same GPU."""
    if not commands.devices:
        return frozenset()
    return frozenset(
        name for name in node.devices if (fault := _fault_of(node, commands, name)) and fault.state == "gone"
    )


def disturb_preparing(commands: Commands, claim: Claim, wait: Callable[[float], object]) -> None:
    """Take longer, or fail, where commands say so of the claim.

    Raises:
        PluginError: `sim-told-to-fail`.
    """
    names = {"", *(each.device for each in claim.devices)}
    for fault in commands.prepare:
        if fault.device in names and is_for(fault.claim, claim):
            wait(fault.seconds)
            if fault.error:
                hint = "dra-infra-plugin sim heal ends it"
                raise PluginError.of(path=str(claim), code="sim-told-to-fail", message=fault.error, hint=hint)


def unknown_devices(node: SimulatedNode, commands: Commands) -> Iterator[str]:
    """Names in commands that are those of no device."""
    said = [*commands.devices, *commands.binding_conditions]
    said += [each.device for each in commands.prepare if each.device]
    said += [each.device for each in commands.bindings if each.device]
    for name in dict.fromkeys(said):
        if name != EVERY and not any(_is_on(node, name, each) for each in node.devices):
            yield name


def _fault_of(node: SimulatedNode, commands: Commands, device: str) -> DeviceFault | None:
    """Fault of the device, else of the GPU that it is a part of."""
    if device in commands.devices:
        return commands.devices[device]
    return next(
        (
            fault
            for name, fault in commands.devices.items()
            # An XID is of the device that it is told of; what is lost or gone takes all of the GPU with it.
            if (fault.xid is None or name not in node.devices) and _is_on(node, name, device)
        ),
        None,
    )


def _is_on(node: SimulatedNode, gpu: str, device: str) -> bool:
    """True where a device is that GPU or a part of it, by name: A100 in MIG mode are not published whole."""
    if gpu == device:
        return True
    if node.origin != NVIDIA or node.type_of(gpu) not in ("gpu", ""):
        return False
    return node.gpu_of(gpu) == node.gpu_of(device) or device.startswith(f"{gpu}-mig-")


def _health(node: SimulatedNode, fault: DeviceFault) -> Health:
    if fault.state == "unmonitored":
        return Health(state="unknown", message=fault.message or "not watched")
    if fault.xid is None:
        lost = "the GPU is lost" if node.origin == NVIDIA else "unhealthy on command"
        return Health(state="unhealthy", message=fault.message or lost)
    message = fault.message or f"XID {fault.xid}"
    return Health(state="healthy" if fault.xid in IGNORED_XIDS else "unhealthy", message=message)


def _taint(node: SimulatedNode, fault: DeviceFault) -> DeviceTaint | None:
    if node.origin != NVIDIA and fault.xid is None:
        if fault.state == "unmonitored":
            return None
        return DeviceTaint(key=f"{node.driver}/unhealthy", effect="NoSchedule")
    if fault.state == "unmonitored":
        return DeviceTaint(key=f"{node.driver}/unmonitored", effect="None")
    if fault.xid is None:
        return DeviceTaint(key=f"{node.driver}/gpu-lost", effect="NoSchedule")
    effect = "None" if fault.xid in IGNORED_XIDS else "NoSchedule"
    return DeviceTaint(key=f"{node.driver}/xid", value=str(fault.xid), effect=effect)


def devices_like(name: str, node: SimulatedNode) -> str:
    """Hint with the device that may be meant, or the devices that there are."""
    if near := get_close_matches(name, list(node.devices), n=1, cutoff=0.7):
        return f"did you mean {near[0]}?"
    first = list(node.devices)[:_NAMED]
    more = f" and {len(node.devices) - len(first)} more" if len(node.devices) > len(first) else ""
    return f"it has {', '.join(first)}{more}"


INTERVAL: Final = 1.0
"""Seconds between two looks."""


class WatchedCommands:
    """The commands as they were last right.

    Args:
        path: The file, which need not be there; None for no commands ever.
        noticed: Is told what is wrong with the file, each time that it changes.
        judge: What else is wrong with commands that can be read.
    """

    def __init__(
        self,
        path: Path | None,
        noticed: Callable[[Sequence[Problem]], None],
        judge: Callable[[Commands], Iterable[Problem]],
    ) -> None:
        self._path = path
        self._noticed = noticed
        self._judge = judge
        self._commands = Commands()
        self._seen: object = None
        self._told: object = None
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self.ended = threading.Event()

    def now(self) -> Commands:
        """The commands that hold now: the file is read where it changed."""
        self._refresh()
        return self._commands

    def watch(self, changed: Callable[[], None]) -> None:
        """Call *changed* when the file changed."""
        self._refresh()
        with self._lock:
            self._callbacks.append(changed)
            if self._path and not self._thread:
                self._told = self._seen
                self._thread = threading.Thread(target=self._look, name="sim-commands", daemon=True)
                self._thread.start()

    def notify(self) -> None:
        """Notify everybody who watches."""
        for each in tuple(self._callbacks):
            each()

    def close(self) -> None:
        """Stop looking at the file."""
        self.ended.set()
        if self._thread:
            self._thread.join()

    def _look(self) -> None:
        while not self.ended.wait(INTERVAL):
            self._refresh()
            # Another thread may have read it first.
            if self._seen != self._told:
                self._told = self._seen
                self.notify()

    def _refresh(self) -> None:
        if not self._path:
            return
        with self._lock:
            try:
                found = self._path.stat()
                seen: object = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            except OSError:
                seen = "none"
            if seen == self._seen:
                return
            try:
                commands = read_commands(self._path)
                problems = tuple(self._judge(commands))
                self._commands = commands
            except PluginError as error:
                problems = error.problems
            self._seen = seen
        if problems:
            self._noticed(problems)
