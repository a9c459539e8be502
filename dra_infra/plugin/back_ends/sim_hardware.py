"""The state of simulated hardware: it outlives the plugin, and a boot of the machine clears it.

<device>.<uid>.use    a claim has the device: its config, as JSON
<device>.mig          a MIG device that was made
<gpu>.sharing         slices of time, or MPS, that were set on a GPU
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from dra_infra.plugin.claims import is_uid
from dra_infra.plugin.disk import Disk, Folder, explained

_BOOT: Final = re.compile(r"[0-9A-Za-z-]{1,64}")


class Use(NamedTuple):
    """A claim has a device."""

    device: str
    uid: str


class VolatileDisk(Disk):
    """Changes are for other processes to see, and need not survive a crash of the machine."""

    def sync(self, handle: int) -> None:
        """Nothing is waited for."""


class Hardware:
    """Files in a folder of the boot. Every method raises `PluginError` (`plugin-folder-not-usable`).

    Args:
        folder: Is made where it is not there; what earlier boots left in it is removed.
        boot_id: Of the machine.
    """

    def __init__(self, folder: Path, boot_id: str, disk: Disk | None = None) -> None:
        boot = boot_id if _BOOT.fullmatch(boot_id) else "unknown"
        path = folder / boot
        with explained("cannot be made", path):
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            for old in folder.iterdir():
                if old.name != boot and old.is_dir() and not old.is_symlink():
                    shutil.rmtree(old, ignore_errors=True)
        self.path = path
        self._folder = Folder(path, disk or VolatileDisk(), mode=0o644)

    def uses(self) -> frozenset[Use]:
        """Who has what."""
        found = (name.removesuffix(".use").rpartition(".") for name in self._names(".use"))
        return frozenset(Use(device, uid) for device, _, uid in found if is_uid(uid))

    def config_of(self, use: Use) -> str:
        """The config under which a claim has a device, as `take` got it."""
        return str(self._read(f"{use.device}.{use.uid}.use").get("config", ""))

    def take(self, use: Use, config: str) -> None:
        """Note that a claim has a device."""
        self._write(f"{use.device}.{use.uid}.use", {"config": config})

    def give_back(self, use: Use) -> None:
        """Note that it has it no more."""
        self._folder.remove(f"{use.device}.{use.uid}.use")

    def made(self) -> Mapping[str, Mapping[str, Any]]:
        """MIG devices that were made, by name."""
        return {name.removesuffix(".mig"): self._read(name) for name in self._names(".mig")}

    def make(self, device: str, what: Mapping[str, Any]) -> None:
        """Make a MIG device."""
        self._write(f"{device}.mig", what)

    def destroy(self, device: str) -> None:
        """Destroy it."""
        self._folder.remove(f"{device}.mig")

    def sharing(self) -> Mapping[str, Mapping[str, Any]]:
        """What is set on GPUs, by the name of the whole GPU."""
        return {name.removesuffix(".sharing"): self._read(name) for name in self._names(".sharing")}

    def share(self, device: str, how: Mapping[str, Any]) -> None:
        """Set slices of time, or MPS."""
        self._write(f"{device}.sharing", how)

    def reset(self, device: str) -> None:
        """Set a GPU back to what it was."""
        self._folder.remove(f"{device}.sharing")

    def write_marker(self, uid: str, content: Mapping[str, Any]) -> Path:
        """The file that the claim's containers see."""
        name = f"{uid}.claim.json"
        self._write(name, content)
        return self.path / name

    def remove_marker(self, uid: str) -> None:
        """Take it away."""
        self._folder.remove(f"{uid}.claim.json")

    def tidy(self) -> None:
        """Take away what a crash left half-written."""
        self._folder.remove_temporary(bool)

    def _names(self, end: str) -> list[str]:
        return [name for name in self._folder.names() if name.endswith(end) and not name.startswith(".")]

    def _read(self, name: str) -> dict[str, Any]:
        with suppress(ValueError):
            found = json.loads(self._folder.read(name) or b"{}")
            return found if isinstance(found, dict) else {}
        return {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        encoded = json.dumps(content, indent=1, sort_keys=True).encode()
        if self._folder.read(name) != encoded:
            self._folder.replace(name, encoded)
