"""Where one instance of the plugin keeps what it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.settings import Settings
from dra_infra.plugin.service.sockets import Sockets

KUBELETS: Final = "give the kubelet's folder (its --root-dir) as --kubelet-root, mounted at the same path, and start the kubelet first"


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Folders and sockets.

    Args:
        state: The plugin's own folder.
        cdi: That of CDI specs, into which others write as well.
        commands: The file that tells simulated devices what happens to them.
    """

    state: Path
    cdi: Path
    sockets: Sockets
    commands: Path

    @classmethod
    def of(cls, settings: Settings, driver: str) -> Places:
        """As the settings have them."""
        sockets = Sockets(kubelet_root=settings.kubelet_root, driver=driver, pod_uid=settings.pod_uid)
        state = settings.state_folder or sockets.folder
        commands = settings.sim_commands or state / "sim-commands.json"
        return cls(state=state, cdi=settings.cdi_folder, sockets=sockets, commands=commands)

    @property
    def claims(self) -> Path:
        """Folder of the checkpoint."""
        return self.state / "claims"

    @property
    def simulation(self) -> Path:
        """What simulated hardware keeps."""
        return self.state / "sim"

    @property
    def metadata(self) -> Path:
        """Files that describe devices to containers."""
        return self.state / "metadata"

    @property
    def turns(self) -> Path:
        """The file whose holder prepares."""
        return self.state / "turns"

    @property
    def publisher(self) -> Path:
        """The file whose holder publishes."""
        return self.state / "publisher"

    def make_ready(self) -> None:
        """Make the folders.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        # The kubelet's folders are its own to make: where they are not, the kubelet's folder is another one.
        _make(self.state, 0o700, parents=self.state != self.sockets.folder)
        _make(self.claims, 0o700)
        # Runtimes read it, whoever they run as.
        _make(self.cdi, 0o755, parents=True)


def _make(folder: Path, mode: int, *, parents: bool = False) -> None:
    try:
        folder.mkdir(mode=mode, parents=parents, exist_ok=True)
    except OSError as error:
        problem = Problem(
            path=str(folder),
            code="plugin-folder-not-usable",
            message=f"cannot be made: {error.strerror or error}",
            hint=KUBELETS,
        )
        raise PluginError([problem]) from error
