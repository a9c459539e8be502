"""Watches GPUs through NVML's events, and reports what they tell by taints and health.

Keys, values and effects are those of NVIDIA's driver (device_health.go in kubernetes-sigs/dra-driver-nvidia-gpu);
taints stay until the plugin starts anew, as there. Where that driver gives less to go by, this one is more careful:
an ignored XID does not take back what a critical one said, an XID of a whole GPU counts for each of its MIG devices,
and of a lost GPU the others are not blamed where NVML can tell which it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import DeviceTaint
from dra_infra.plugin.back_end import Health
from dra_infra.plugin.back_ends.nvml_devices import gpu_name, mig_name
from dra_infra.plugin.back_ends.nvml_gpus import Gpu
from dra_infra.plugin.back_ends.nvml_library import Nvml
from dra_infra.plugin.failures import as_plugin_error

IGNORED_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors of applications, after which a GPU is as healthy as before (https://docs.nvidia.com/deploy/xid-errors)."""

_WAIT_MS: Final = 1000
"""Milliseconds that one wait for events takes, and so the longest that `stop` waits."""

_PAUSE_S: Final = 5.0
"""Between questions that NVML answers with an error at once."""

_MOST_FAILURES: Final = 3
"""Questions in a row that end with another error than a lost GPU: then nobody watches any more."""

_EVENTS: Final = "the GPUs' events"

_ALL: Final = 0xFFFFFFFF
"""Instance id of events about the whole GPU, or about a whole GPU instance."""


class HealthMonitor:
    """Taints and health of devices since the start.

    Args:
        driver: In whose domain the taints' keys are.
        changed: Called from the watching thread after something else is to be said of a device.
        noticed: Told where the watch ends by what nobody expected.

    Attributes:
        changes: How often something else was to be said.
    """

    def __init__(
        self,
        nvml: Nvml,
        gpus: Iterable[Gpu],
        *,
        driver: str,
        changed: Callable[[], None],
        noticed: Callable[[Sequence[Problem]], None],
    ) -> None:
        self._nvml = nvml
        self._gpus = tuple(gpus)
        self._driver = driver
        self._changed = changed
        self._noticed = noticed
        self.changes = 0
        self._taints: dict[str, dict[str, DeviceTaint]] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._events: Any = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Register for NVML's events, and watch them in a thread; GPUs that NVML cannot watch get the taint `unmonitored`."""
        pynvml = self._nvml.pynvml
        try:
            self._events = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError:
            self._mark(map(_names, self._gpus), "unmonitored", effect="None")
            return
        watched = [gpu for gpu in self._gpus if self._register(gpu)]
        unwatched = [gpu for gpu in self._gpus if gpu not in watched]
        self._mark(map(_names, unwatched), "unmonitored", effect="None")
        if watched:
            self._thread = threading.Thread(target=self._watch, name="nvml-events", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it, at most for a question's time."""
        self._stopping.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        if self._events is not None:
            self._nvml.quietly("nvmlEventSetFree", self._events)
            self._events = None

    def taints(self, device: str) -> list[DeviceTaint]:
        """Taints of a device by its name, in the order of their keys."""
        with self._lock:
            return [taint for _, taint in sorted(self._taints.get(device, {}).items())]

    def health(self) -> Mapping[str, Health]:
        """Health of all devices that are not healthy, by name."""
        with self._lock:
            told = {name: _health(taints.values(), self._driver) for name, taints in self._taints.items()}
        return {name: health for name, health in told.items() if health.state != "healthy"}

    def _register(self, gpu: Gpu) -> bool:
        pynvml = self._nvml.pynvml
        wanted = pynvml.nvmlEventTypeXidCriticalError
        try:
            if not pynvml.nvmlDeviceGetSupportedEventTypes(gpu.handle) & wanted:
                return False
            pynvml.nvmlDeviceRegisterEvents(gpu.handle, wanted, self._events)
        except pynvml.NVMLError:
            return False
        return True

    def _watch(self) -> None:
        try:
            # The end of a thread is told to nobody, and nobody would watch.
            with as_plugin_error(_EVENTS, then="they are watched again when the plugin is restarted"):
                self._ask()
        except PluginError as error:
            self._report_unmonitored(error.problems)

    def _ask(self) -> None:
        pynvml = self._nvml.pynvml
        failures = 0
        while not self._stopping.is_set():
            try:
                event = pynvml.nvmlEventSetWait(self._events, _WAIT_MS)
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_TIMEOUT:
                    failures = 0
                    continue
                if error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
                    self._report_lost()
                else:
                    failures += 1
                    if failures == _MOST_FAILURES:
                        self._report_deaf(error)
                # A lost GPU is told again and again, at once.
                self._stopping.wait(_PAUSE_S)
                continue
            failures = 0
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._take(event)

    def _take(self, event: Any) -> None:
        pynvml = self._nvml.pynvml
        try:
            uuid = pynvml.nvmlDeviceGetUUID(event.device)
        except pynvml.NVMLError:
            self._report_lost()
            return
        xid = int(event.eventData)
        names = [
            _affected(gpu, event.gpuInstanceId, event.computeInstanceId)
            for gpu in self._gpus
            if gpu.uuid == uuid
        ]
        effect = "None" if xid in IGNORED_XIDS else "NoSchedule"
        self._add(names, "xid", value=str(xid), effect=effect)

    def _report_deaf(self, error: Any) -> None:
        """Report that NVML gives no events any more, without which a broken GPU looks as healthy as ever."""
        problem = Problem(
            path=_EVENTS,
            code="nvml-not-usable",
            message=f"NVML tells none any more: {error}",
            hint="see `nvidia-smi` and `dmesg` on the node; then restart the plugin",
            severity="warning",
        )
        self._report_unmonitored([problem])

    def _report_unmonitored(self, problems: Sequence[Problem]) -> None:
        self._noticed(problems)
        self._add(map(_names, self._gpus), "unmonitored", effect="None")

    def _report_lost(self) -> None:
        lost = [gpu for gpu in self._gpus if self._is_lost(gpu)]
        self._add(map(_names, lost or self._gpus), "gpu-lost", effect="NoSchedule")

    def _is_lost(self, gpu: Gpu) -> bool:
        pynvml = self._nvml.pynvml
        try:
            pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
            pynvml.nvmlDeviceGetMemoryInfo(gpu.handle)
        except pynvml.NVMLError as error:
            return bool(error.value in (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NOT_FOUND))
        return False

    def _add(self, groups: Iterable[Iterable[str]], key: str, *, effect: str, value: str = "") -> None:
        if self._mark(groups, key, effect=effect, value=value):
            self._changed()

    def _mark(self, groups: Iterable[Iterable[str]], key: str, *, effect: str, value: str = "") -> bool:
        """Taint devices, each group those of a GPU; True where any is new. No softer effect takes the place of a harder."""
        taint = DeviceTaint(key=f"{self._driver}/{key}", value=value, effect=effect)
        new = False
        with self._lock:
            for name in (name for group in groups for name in group):
                before = self._taints.setdefault(name, {}).get(key)
                softer = before is not None and before.effect == "NoSchedule" and effect != "NoSchedule"
                if before != taint and not softer:
                    self._taints[name][key] = taint
                    new = True
            self.changes += new
        return new


def _names(gpu: Gpu) -> tuple[str, ...]:
    """Names of all devices of a GPU."""
    return _affected(gpu, _ALL, _ALL)


def _affected(gpu: Gpu, gpu_instance: int, compute_instance: int) -> tuple[str, ...]:
    if gpu.mig is None:
        return (gpu_name(gpu),)
    return tuple(
        mig_name(gpu, mig)
        for mig in gpu.mig
        if gpu_instance in (mig.gpu_instance, _ALL) and compute_instance in (mig.compute_instance, _ALL)
    )


def _health(taints: Iterable[DeviceTaint], driver: str) -> Health:
    by_key = {taint.key.removeprefix(f"{driver}/"): taint for taint in taints}
    if "gpu-lost" in by_key:
        return Health(state="unhealthy", message="the GPU is lost: it does not answer any more")
    if (xid := by_key.get("xid")) and xid.effect == "NoSchedule":
        return Health(state="unhealthy", message=f"the driver told XID {xid.value} of it")
    if "unmonitored" in by_key:
        return Health(state="unknown", message="NVML cannot watch it")
    return Health()
