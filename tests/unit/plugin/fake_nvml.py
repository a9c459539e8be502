"""A fake of NVML. There is no GPU and no library behind it: facts come from the catalogue or from the test.

It takes the place of the module `pynvml` of nvidia-ml-py and has the functions of it that the plugin uses, with their
arguments, results and errors; constants and exceptions are the module's own. Each function can be made to fail, for all GPUs
or for one. What it cannot show is how the real library behaves where its documentation says nothing: `make e2e-gpu` is for that.
"""

# ruff: noqa: N802, N815  (the names are NVML's)

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml

OPTIONAL = (
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetBrand",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetName",
    "nvmlDeviceGetPciInfo",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetDriverVersion",
)
"""What a GPU can be published without."""

ERRORS = tuple(sorted(pynvml.NVMLError._valClassMapping))
"""Every error that NVML has, by number."""

ALL = 0xFFFFFFFF


@dataclass(kw_only=True)
class FakeProfile:
    """A profile of GPU instances.

    Args:
        shape: End of its NVML_GPU_INSTANCE_PROFILE constant, 1_SLICE_REV1.
    """

    shape: str
    id: int
    memory_mib: int
    multiprocessors: int = 0
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0

    @property
    def slices(self) -> int:
        return int(self.shape.partition("_")[0])


@dataclass(kw_only=True)
class FakeMig:
    """A MIG device: a GPU instance with a compute instance on all of it, or on *compute_slices*."""

    uuid: str
    gi: int
    ci: int = 0
    profile: FakeProfile
    start: int
    size: int
    compute_slices: int | None = None


@dataclass(kw_only=True)
class FakeGpu:
    """A GPU; numbers are NVML's constants."""

    minor: int
    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    brand: int = pynvml.NVML_BRAND_NVIDIA
    architecture: int = pynvml.NVML_DEVICE_ARCH_HOPPER
    capability: tuple[int, int] = (9, 0)
    addressing: int | None = pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM
    bus_id: str = "00000000:1B:00.0"
    memory_mib: int | None = 81559
    mig_mode: bool | None = False
    profiles: tuple[FakeProfile, ...] = ()
    migs: list[FakeMig | None] = field(default_factory=list)
    events: int = pynvml.nvmlEventTypeXidCriticalError


class FakeNvml:
    """The module.

    Args:
        gpus: In NVML's order.
        driver_version: As NVML writes it, with zeros.
        cuda: 13000 for 13.0.
    """

    nvmlLib = object()

    def __init__(self, *gpus: FakeGpu, driver_version: str = "580.126.20", cuda: int = 13000) -> None:
        self.gpus = list(gpus)
        self.driver_version = driver_version
        self.cuda = cuda
        self.failing: dict[tuple[str, int | None], int] = {}
        self.calls: list[str] = []
        self.sessions = 0
        self.event_sets: list[queue.Queue[Any]] = []
        self.freed = 0

    def fail(self, function: str, error: int, *, minor: int | None = None) -> None:
        """Have a function fail from now on, for every GPU or for one."""
        assert f"_{function}" in dir(self), function
        self.failing[function, minor] = error

    def tell(self, *, minor: int, xid: int, gi: int = ALL, ci: int = ALL, type_: int | None = None) -> None:
        """Send an event to whoever watches."""
        event = SimpleNamespace(
            device=self._gpu(minor),
            eventType=pynvml.nvmlEventTypeXidCriticalError if type_ is None else type_,
            eventData=xid,
            gpuInstanceId=gi,
            computeInstanceId=ci,
        )
        for events in self.event_sets:
            events.put(event)

    def tell_error(self, error: int) -> None:
        """Have the wait for events fail once."""
        for events in self.event_sets:
            events.put(error)

    def __getattr__(self, name: str) -> Any:
        function: Callable[..., Any] | None = type(self).__dict__.get(f"_{name}")
        if function is None:
            assert not callable(getattr(pynvml, name)) or not name.startswith("nvml"), f"not faked: {name}"
            return getattr(pynvml, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append(name)
            minors = {each.minor for each in arguments[:1] if isinstance(each, FakeGpu)}
            for minor in (None, *minors):
                # Read once: the test may take it away meanwhile.
                if (error := self.failing.get((name, minor))) is not None:
                    raise pynvml.NVMLError(error)
            return function(self, *arguments, **named)

        return call

    def _gpu(self, minor: int) -> FakeGpu:
        return next(gpu for gpu in self.gpus if gpu.minor == minor)

    # The library's functions, each under its name behind a line.

    def _nvmlInitWithFlags(self, flags: int) -> None:
        assert flags == pynvml.NVML_INIT_FLAG_NO_GPUS
        self.sessions += 1

    def _nvmlShutdown(self) -> None:
        self.sessions -= 1

    def _nvmlSystemGetDriverVersion(self) -> str:
        return self.driver_version

    def _nvmlSystemGetCudaDriverVersion(self) -> int:
        return self.cuda

    def _nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        gpu = self.gpus[index]
        if error := self.failing.get(("nvmlDeviceGetHandleByIndex", gpu.minor)):
            raise pynvml.NVMLError(error)
        return gpu

    def _nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu | FakeMig:
        for gpu in self.gpus:
            for each in (gpu, *gpu.migs):
                if each is not None and each.uuid == uuid:
                    return each
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def _nvmlDeviceGetMinorNumber(self, handle: FakeGpu) -> int:
        return handle.minor

    def _nvmlDeviceGetUUID(self, handle: FakeGpu | FakeMig) -> str:
        return handle.uuid

    def _nvmlDeviceGetName(self, handle: FakeGpu) -> str:
        return handle.name

    def _nvmlDeviceGetBrand(self, handle: FakeGpu) -> int:
        return handle.brand

    def _nvmlDeviceGetArchitecture(self, handle: FakeGpu) -> int:
        return handle.architecture

    def _nvmlDeviceGetCudaComputeCapability(self, handle: FakeGpu) -> tuple[int, int]:
        return handle.capability

    def _nvmlDeviceGetAddressingMode(self, handle: FakeGpu) -> int:
        return _known(handle.addressing)

    def _nvmlDeviceGetPciInfo(self, handle: FakeGpu) -> SimpleNamespace:
        return SimpleNamespace(busId=handle.bus_id.encode())

    def _nvmlDeviceGetMemoryInfo(self, handle: FakeGpu) -> SimpleNamespace:
        return SimpleNamespace(total=_known(handle.memory_mib) * 1024**2)

    def _nvmlDeviceGetMigMode(self, handle: FakeGpu) -> list[int]:
        return [int(_known(handle.mig_mode))] * 2

    def _nvmlDeviceGetMaxMigDeviceCount(self, handle: FakeGpu) -> int:
        return len(handle.migs)

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, handle: FakeGpu, index: int) -> FakeMig:
        mig = handle.migs[index]
        if mig is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return mig

    def _nvmlDeviceGetGpuInstanceId(self, mig: FakeMig) -> int:
        return mig.gi

    def _nvmlDeviceGetComputeInstanceId(self, mig: FakeMig) -> int:
        return mig.ci

    def _nvmlDeviceGetGpuInstanceById(self, handle: FakeGpu, number: int) -> tuple[FakeGpu, int]:
        assert any(mig and mig.gi == number for mig in handle.migs)
        return handle, number

    def _nvmlGpuInstanceGetInfo(self, instance: tuple[FakeGpu, int]) -> SimpleNamespace:
        mig = _migs(instance)[0]
        placement = SimpleNamespace(start=mig.start, size=mig.size)
        return SimpleNamespace(id=mig.gi, profileId=mig.profile.id, placement=placement)

    def _nvmlGpuInstanceGetComputeInstanceById(self, instance: tuple[FakeGpu, int], number: int) -> FakeMig:
        return next(mig for mig in _migs(instance) if mig.ci == number)

    def _nvmlComputeInstanceGetInfo(self, mig: FakeMig) -> SimpleNamespace:
        slices = mig.compute_slices or mig.profile.slices
        return SimpleNamespace(id=mig.ci, profileId=_compute_profile(slices))

    def _nvmlDeviceGetGpuInstanceProfileInfo(
        self, handle: FakeGpu, profile: int, version: int
    ) -> SimpleNamespace:
        assert version in (1, 2)
        for each in handle.profiles:
            if getattr(pynvml, f"NVML_GPU_INSTANCE_PROFILE_{each.shape}") == profile:
                return SimpleNamespace(
                    id=each.id,
                    memorySizeMB=each.memory_mib,
                    multiprocessorCount=each.multiprocessors,
                    copyEngineCount=each.copy_engines,
                    decoderCount=each.decoders,
                    encoderCount=each.encoders,
                    jpegCount=each.jpeg_engines,
                    ofaCount=each.ofa_engines,
                )
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def _nvmlGpuInstanceGetComputeInstanceProfileInfo(
        self, instance: tuple[FakeGpu, int], profile: int, engines: int, version: int
    ) -> SimpleNamespace:
        assert version in (1, 2)
        assert engines == pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
        return SimpleNamespace(id=profile)

    def _nvmlEventSetCreate(self) -> queue.Queue[Any]:
        self.event_sets.append(queue.Queue())
        return self.event_sets[-1]

    def _nvmlEventSetFree(self, events: queue.Queue[Any]) -> None:
        self.event_sets.remove(events)
        self.freed += 1

    def _nvmlDeviceGetSupportedEventTypes(self, handle: FakeGpu) -> int:
        return handle.events

    def _nvmlDeviceRegisterEvents(self, handle: FakeGpu, types: int, events: queue.Queue[Any]) -> None:
        assert types & handle.events == types

    def _nvmlEventSetWait(self, events: queue.Queue[Any], milliseconds: int) -> Any:
        try:
            # Shorter than it is asked, so that no test waits for it.
            event = events.get(timeout=min(milliseconds, 5) / 1000)
        except queue.Empty:
            event = pynvml.NVML_ERROR_TIMEOUT
        if isinstance(event, int):
            raise pynvml.NVMLError(event)
        return event


def _known(value: Any) -> Any:
    if value is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return value


def _migs(instance: tuple[FakeGpu, int]) -> list[FakeMig]:
    gpu, number = instance
    return [mig for mig in gpu.migs if mig and mig.gi == number]


def _compute_profile(slices: int) -> int:
    return int(getattr(pynvml, f"NVML_COMPUTE_INSTANCE_PROFILE_{slices}_SLICE"))
