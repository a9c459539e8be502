"""The state of simulated hardware: it outlives the plugin, and a boot of the machine clears it.

<device>.<uid>.use    a claim has the device: its config, as JSON
<device>.mig          a MIG device that was made
claims/<uid>.json     what the containers of a claim see
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

from dra_infra.plugin.claims import check_uid
from dra_infra.plugin.disk import Disk, Folder, explained

_MARKERS: Final = "claims"

_BOOT: Final = re.compile(r"[0-9A-Za-z-]{1,64}")


class Use(NamedTuple):
    """A claim has a device."""

    device: str
    uid: str


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
            (path / _MARKERS).mkdir(mode=0o755, parents=True, exist_ok=True)
            for old in folder.iterdir():
                if old.name != boot and old.is_dir() and not old.is_symlink():
                    shutil.rmtree(old, ignore_errors=True)
        self.path = path
        self._folder = Folder(path, disk, mode=0o644)
        self._markers = Folder(path / _MARKERS, disk, mode=0o644)

    def uses(self) -> frozenset[Use]:
        """Who has what."""
        return frozenset(Use(*name.removesuffix(".use").split(".", 1)) for name in self._names(".use"))

    def uses_of(self, uid: str) -> list[Use]:
        """What a claim has."""
        end = f".{uid}.use"
        return [Use(name.removesuffix(end), uid) for name in self._names(end)]

    def holders(self, *, but: str) -> Mapping[str, str]:
        """Devices that other claims than *but* have, each with the UID of one that has it."""
        end = f".{but}.use"
        found = (name for name in self._names(".use") if not name.endswith(end))
        # Names alone, without a look at more: there may be a thousand.
        return dict(name[:-4].split(".", 1) for name in found)

    def config_of(self, use: Use) -> str:
        """The config under which a claim has a device, as `take` got it."""
        return str(self._read(f"{use.device}.{use.uid}.use").get("config", ""))

    def take(self, use: Use, config: str) -> None:
        """Note that a claim has a device."""
        _write(self._folder, f"{use.device}.{use.uid}.use", {"config": config})

    def give_back(self, use: Use) -> None:
        """Note that it has it no more."""
        self._folder.remove(f"{use.device}.{use.uid}.use")

    def made(self) -> Mapping[str, Mapping[str, Any]]:
        """MIG devices that were made, by name."""
        return {name.removesuffix(".mig"): self._read(name) for name in self._names(".mig")}

    def make(self, device: str, what: Mapping[str, Any]) -> None:
        """Make a MIG device."""
        _write(self._folder, f"{device}.mig", what)

    def destroy(self, device: str) -> None:
        """Destroy it."""
        self._folder.remove(f"{device}.mig")

    def sharing(self) -> Mapping[str, Mapping[str, Any]]:
        """What is set on GPUs, by the name of the whole GPU."""
        return {name.removesuffix(".sharing"): self._read(name) for name in self._names(".sharing")}

    def share(self, device: str, how: Mapping[str, Any]) -> None:
        """Set slices of time, or MPS."""
        _write(self._folder, f"{device}.sharing", how)

    def reset(self, device: str) -> None:
        """Set a GPU back to what it was."""
        self._folder.remove(f"{device}.sharing")

    def write_marker(self, uid: str, content: Mapping[str, Any]) -> Path:
        """The file that the claim's containers see."""
        name = f"{check_uid(uid)}.json"
        _write(self._markers, name, content)
        return self._markers.path / name

    def remove_marker(self, uid: str) -> None:
        """Take it away."""
        self._markers.remove(f"{check_uid(uid)}.json")

    def tidy(self) -> None:
        """Take away what a crash left half-written."""
        self._folder.remove_temporary(bool)
        self._markers.remove_temporary(bool)

    def _names(self, end: str) -> list[str]:
        # What is no file of ours has another number of dots, and what is half-written begins with one.
        dots = 2 if end.endswith(".use") else 1
        return [
            name
            for name in self._folder.names()
            if name.endswith(end) and name.count(".") == dots and name[0] != "."
        ]

    def _read(self, name: str) -> dict[str, Any]:
        with suppress(ValueError):
            found = json.loads(self._folder.read(name) or b"{}")
            return found if isinstance(found, dict) else {}
        return {}


def _write(folder: Folder, name: str, content: Mapping[str, Any]) -> None:
    # A whole line: what a container prints of it shows in `kubectl logs` only then.
    encoded = json.dumps(content, sort_keys=True).encode() + b"\n"
    if folder.read(name) != encoded:
        folder.replace(name, encoded)
