"""Starts and stops the parts of the plugin that the kubelet and the API server see.

The order is one in which neither is misled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.claims import Claim, ClaimReference
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.publishing.publisher import Publisher
from dra_infra.plugin.service.health import HealthService
from dra_infra.plugin.service.node import NodeService
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import Registration, Sockets

THREADS: Final = 16
"""Calls at work. Preparing is one at a time; what they do at the same time is to read claims from the API server."""

LINGER: Final = 2.0
"""Seconds in which the kubelet notices that a registration went: it looks once a second (pkg/kubelet/pluginmanager)."""

GRACE: Final = 20.0
"""Seconds for calls in flight: a pod has 30 to end, if nobody said otherwise."""


class Driver:
    """A driver of this node: what registers, publishes, prepares and reports.

    Args:
        node: The node's name, which is that of its pool too.
        read_claim: Reads an allocated claim from the API server; raises `PluginError`.
        sockets: Where to be found. With a pod's UID an older instance may be alive, and stays with the kubelet until it stops.
        linger: Seconds for which calls are taken after the registration went, where another instance may have come.
        grace: Seconds for which calls in flight are waited for.
    """

    def __init__(
        self,
        *,
        node: str,
        back_end: BackEnd,
        preparations: Preparations,
        read_claim: Callable[[ClaimReference], Claim],
        publisher: Publisher,
        sockets: Sockets,
        observer: Observer | None = None,
        linger: float = LINGER,
        grace: float = GRACE,
    ) -> None:
        self._back_end = back_end
        self._preparations = preparations
        self._publisher = publisher
        self._sockets = sockets
        self._observer = observer or Observer()
        self._linger = linger
        self._grace = grace
        self._health = HealthService(inventory=back_end.inventory, pool=node, observer=self._observer)
        pool = Pool(THREADS, "service")
        self._node_service = NodeService(
            preparations=preparations, read_claim=read_claim, observer=self._observer, pool=pool
        )
        self._registration = Registration(
            driver=back_end.driver, endpoint=sockets.service, observer=self._observer
        )
        self._server = Server(
            (sockets.service, sockets.registration),
            (
                *self._node_service.handlers(),
                *self._health.handlers(),
                *self._registration.handlers(),
            ),
            pool=pool,
        )
        self._showing = threading.Lock()
        self._may_show = False
        self._is_aside = False
        self._once = threading.Lock()
        self._started: ExitStack | None = None

    @property
    def registered(self) -> bool:
        """True while the kubelet has the plugin registered: it is ready."""
        return self._registration.registered and self._server.intact(self._sockets.registration)

    @property
    def is_aside(self) -> bool:
        """True while it is not registered on purpose: slices of another driver of the name are there."""
        return self._is_aside

    @property
    def intact(self) -> bool:
        """True while both sockets are there: where one was taken away, only a new start helps."""
        with self._showing:
            registration = self._sockets.registration
            seen = (
                self._server.is_hidden(registration) if self._is_aside else self._server.intact(registration)
            )
            return seen and self._server.intact(self._sockets.service)

    def start(self) -> None:
        """Recover, serve, publish, register: whoever sees us can use what they see.

        Raises:
            PluginError: `plugin-folder-not-usable`, `socket-path-too-long`, `socket-not-made`, and what the publisher says.
                Nothing is left running then.
        """
        with ExitStack() as started:
            self._sockets.make_ready()
            if problems := self._preparations.recover():
                self._observer.noticed(problems)
            started.callback(self._back_end.close)
            started.callback(self._stop_serving)
            self._server.start()
            self._server.show(self._sockets.service)
            self._back_end.watch(self._health.changed)
            started.callback(self._publisher.stop)
            self._publisher.start(on_name_taken=self._stand_aside)
            started.callback(self._let_go)
            self._register()
            self._started = started.pop_all()

    def stop(self) -> None:
        """Go in the opposite order, and wait for calls in flight. What is prepared and published stays. Again is no error."""
        with self._once:
            started = self._started
            self._started = None
            if started:
                started.close()

    def _register(self) -> None:
        with self._showing:
            self._may_show = True
            if not self._is_aside:
                self._server.show(self._sockets.registration)

    def _stand_aside(self, taken: bool) -> None:  # noqa: FBT001  (the publisher's answer)
        """Be registered while no other driver has slices under the name.

        30 s after a driver went the kubelet deletes its slices, but only if nobody of its name is registered by then
        (usable and pendingWipes of pkg/kubelet/cm/dra/plugin): who takes the name over sooner would never publish.
        """
        with self._showing:
            if taken != self._is_aside and self._may_show:
                change = self._server.hide if taken else self._server.show
                change(self._sockets.registration)
                # The kubelet says nothing when it forgets us.
                self._registration.registered = False
            self._is_aside = taken

    def _let_go(self) -> None:
        """Take calls until the kubelet has noticed that the registration went, and calls the other instance."""
        with self._showing:
            self._may_show = False
            self._server.withdraw(self._sockets.registration)
        if not self._sockets.pod_uid or not self._registration.registered:
            return
        if self._health.watchers:
            # It watches for as long as we are registered.
            self._health.wait_until_unwatched(self._linger)
        else:
            time.sleep(self._linger)

    def _stop_serving(self) -> None:
        self._health.close()
        self._server.stop(self._grace)
