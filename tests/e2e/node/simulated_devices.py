"""What happens to simulated devices, on command, and what the API server then shows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from dra_infra.plugin.back_ends.sim_commands import Commands, write_commands
from tests.support.node.plugin_process import PluginProcess
from tests.support.scheduler.stage import Stage
from tools.cluster import Api, Manifest

SLICE = "resource.k8s.io/v1/ResourceSlice"
SECONDS = 120.0

Devices = Mapping[str, Manifest]


@dataclass(frozen=True)
class SimulatedDevices:
    """The devices of a plugin."""

    api: Api
    plugin: PluginProcess

    def tell(self, commands: Commands) -> None:
        """Have this happen to them, in the place of what was said before."""
        write_commands(self.plugin.folder / "sim-commands.json", commands)

    def wait_for(self, predicate: Callable[[Devices], object]) -> Devices:
        """The published devices by name, once *predicate* holds for them, and the scheduler has seen them so."""
        found = self.api.wait_for(SLICE, lambda slices: predicate(self._of(slices)), timeout=SECONDS)
        # It has a watch of its own for each kind: a claim that is made now may come to it before these slices.
        Stage(self.api).wait_until_seen()
        return self._of(found)

    def _of(self, slices: list[Manifest]) -> Devices:
        return {
            device["name"]: device
            for each in slices
            if each["spec"]["nodeName"] == self.plugin.node.name
            for device in each["spec"].get("devices", [])
        }


@contextmanager
def told(api: Api, plugin: PluginProcess) -> Iterator[SimulatedDevices]:
    """The devices of a plugin, to which nothing has happened; in the end all are as they were."""
    devices = SimulatedDevices(api, plugin)
    before = devices.wait_for(bool)
    yield devices
    devices.tell(Commands())
    devices.wait_for(lambda found: found == before)


def taints_of(device: Manifest) -> list[tuple[str, str, str]]:
    """Key, value and effect of the taints of a device."""
    return [(each["key"], each.get("value", ""), each["effect"]) for each in device.get("taints", [])]
