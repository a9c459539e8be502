"""The plugin as a whole: its parts, made as the settings say.

Building opens nothing but folders; `start` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dra_infra.client.kubeconfig import find_account
from dra_infra.plugin.api_server import reconciling
from dra_infra.plugin.api_server.binding import Binder
from dra_infra.plugin.api_server.claim_reading import ClaimReader
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.reconciling import Reconciler
from dra_infra.plugin.back_end import Devices
from dra_infra.plugin.cdi import CdiFolder
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.command.back_end_loading import LoadedBackEnd, driver_name, make_back_end
from dra_infra.plugin.command.instance import Instances, Paths, refuse_others
from dra_infra.plugin.command.logs import log
from dra_infra.plugin.command.operation_log import Observers, OperationLog
from dra_infra.plugin.command.probes import ProbeServer, ask_itself
from dra_infra.plugin.command.settings import Settings
from dra_infra.plugin.disk import Disk, Folder
from dra_infra.plugin.driver import Driver
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.publishing.publisher import Publisher
from dra_infra.plugin.service.device_metadata import WithMetadata
from dra_infra.release import VERSION

if TYPE_CHECKING:
    from dra_infra.plugin.command.metrics import Metrics

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Plugin:
    """All parts of the plugin, to be started and stopped.

    Args:
        settings: What was told.
        disk: What changes the checkpoint and the CDI specs; tests take its place.
        environment: Names the API server, and proxies.
    """

    def __init__(
        self, settings: Settings, *, disk: Disk | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._settings = settings
        driver = driver_name(settings)
        self.paths = Paths.of(settings, driver)
        self.paths.make_ready()
        self._instances = Instances(self.paths)
        self._metrics = self._make_metrics(driver)
        self.observer = Observers(OperationLog(), *filter(None, [self._metrics]))
        loaded = make_back_end(settings, self.paths, self.observer.noticed)
        self.back_end = loaded.back_end
        devices: Devices = self.back_end
        if settings.metadata_files:
            devices = WithMetadata(self.back_end, self.paths.metadata)
        self.api = Api(find_account(settings.kubeconfig, None, environment, can_choose=False), environment)
        self.preparations = Preparations(
            driver=driver,
            boot_id=_BOOT_ID.read_text().strip(),
            checkpoint=Checkpoint(Folder(self.paths.claims, disk)),
            specs=CdiFolder(Folder(self.paths.cdi, disk, mode=0o644), driver),
            back_end=devices,
            lock=PreparationLock(self.paths.preparation_lock),
            notice=self.observer.noticed,
        )
        self.publisher = Publisher(
            self.api,
            back_end=self.back_end,
            node=settings.node_name,
            observer=self.observer,
            lock=self.paths.publisher_lock,
        )
        reader = ClaimReader(
            self.api, driver=driver, node=settings.node_name, whole_names_only=loaded.whole_names_only
        )
        self._reconciler = Reconciler(
            self.api,
            reader=reader,
            preparations=self.preparations,
            observer=self.observer,
            kubelet_state=settings.kubelet_root / reconciling.NAME,
        )
        self.driver = Driver(
            node=settings.node_name,
            back_end=self.back_end,
            preparations=self.preparations,
            read_claim=reader.read,
            publisher=self.publisher,
            sockets=self.paths.sockets,
            observer=self.observer,
        )
        self._binder = self._make_binder(loaded)
        self._running = ExitStack()

    def start(self) -> None:
        """Serve the kubelet, publish, and answer to probes and scrapes.

        Raises:
            PluginError: `plugin-already-running`, `driver-name-taken`, `plugin-address-not-usable`, and those of `Driver.start`. Nothing is
                left running then.
        """
        with ExitStack() as running:
            running.callback(self._instances.release)
            refuse_others(self.paths.sockets, ours_alive=self._instances.acquire())
            self._serve_metrics(running)
            # Before the driver: who asks too early is told that it is not ready, not that nobody is there.
            self._serve_probes(running)
            self.driver.start()
            running.callback(self.driver.stop)
            # Behind it: it recovers first, and these ask what is prepared.
            self._reconciler.start()
            running.callback(self._reconciler.stop)
            if self._binder:
                self._binder.start()
                running.callback(self._binder.stop)
            # First at the end: whoever waits for a server that is busy need not wait any more.
            running.callback(self.api.close)
            self._running = running.pop_all()
        log(
            "info",
            "started",
            version=VERSION,
            driver=self.back_end.driver,
            node=self._settings.node_name,
            back_end=self._settings.back_end,
        )

    def stop(self) -> None:
        """Let calls in flight end, and leave what is prepared and published as it is."""
        self._running.close()

    def is_alive(self) -> str:
        """Liveness: the reason why the plugin cannot be called; empty where it can."""
        if not self.driver.intact:
            return "a socket was taken away"
        registration = None if self.driver.is_aside else self.paths.sockets.registration
        return ask_itself(registration, self.paths.sockets.service) or self.api.contact.hopeless()

    def is_ready(self) -> str:
        """Readiness: the reason why claims cannot be prepared; empty where they can."""
        # An older instance ends when this one is ready, and its slices stay. Were this one not ready until it has published
        # for itself, a busy API server would leave the node without a driver that is ready.
        if not (self.publisher.wait(0) or self.publisher.is_successor):
            return "the node's slices are not published yet"
        if not self.driver.registered:
            return "the kubelet did not register the plugin yet"
        return self.api.contact.lost()

    def _make_binder(self, loaded: LoadedBackEnd) -> Binder | None:
        """Make what writes binding conditions, where devices may have any."""
        if loaded.bindings is None:
            return None
        return Binder(
            self.api,
            back_end=loaded.back_end,
            bindings=loaded.bindings,
            node=self._settings.node_name,
            observer=self.observer,
        )

    def _make_metrics(self, driver: str) -> Metrics | None:
        if self._settings.metrics_address is None:
            return None
        # Late: it takes 1.2 MiB and 40 ms, and is off unless an address is given.
        from dra_infra.plugin.command.metrics import Metrics

        return Metrics(self.paths.claims, driver=driver, back_end=self._settings.back_end, version=VERSION)

    def _serve_metrics(self, running: ExitStack) -> None:
        if self._settings.metrics_address and self._metrics:
            server = self._metrics.serve(self._settings.metrics_address)
            running.callback(server.stop)
            log("info", "metrics are served", port=server.port)

    def _serve_probes(self, running: ExitStack) -> None:
        if self._settings.health_address:
            checks = {"": self.is_alive, "liveness": self.is_alive, "readiness": self.is_ready}
            self.paths.sockets.make_ready()
            folder = self.paths.sockets.folder
            server = ProbeServer(self._settings.health_address, checks, folder=folder)
            running.callback(server.stop)
            log("info", "probes are answered", port=server.port)
