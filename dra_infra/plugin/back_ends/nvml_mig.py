"""MIG devices that a GPU has now: NVML numbers profiles and instances, go-nvlib names them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.plugin.back_ends.nvml_library import Nvml, left_out

_SHAPES: Final = {
    "1_SLICE": (1, ""),
    "1_SLICE_REV1": (1, "+me"),
    "1_SLICE_REV2": (1, ""),
    "1_SLICE_GFX": (1, "+gfx"),
    "1_SLICE_NO_ME": (1, "-me"),
    "1_SLICE_ALL_ME": (1, "+me.all"),
    "2_SLICE": (2, ""),
    "2_SLICE_REV1": (2, "+me"),
    "2_SLICE_GFX": (2, "+gfx"),
    "2_SLICE_NO_ME": (2, "-me"),
    "2_SLICE_ALL_ME": (2, "+me.all"),
    "3_SLICE": (3, ""),
    "4_SLICE": (4, ""),
    "4_SLICE_GFX": (4, "+gfx"),
    "6_SLICE": (6, ""),
    "7_SLICE": (7, ""),
    "8_SLICE": (8, ""),
}
"""Compute slices and suffix of NVML's profiles of GPU instances (NewMigProfile of go-nvlib)."""

_COMPUTE_SLICES: Final = {
    "1_SLICE": 1,
    "1_SLICE_REV1": 1,
    "2_SLICE": 2,
    "3_SLICE": 3,
    "4_SLICE": 4,
    "6_SLICE": 6,
    "7_SLICE": 7,
    "7_SLICE_NVL": 7,
    "8_SLICE": 8,
}
"""Compute slices of NVML's profiles of compute instances."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MigDevice:
    """A MIG device that exists.

    Args:
        gpu_instance: Its id, which tells it from others of the GPU, and names its device file.
        compute_instance: The same within the GPU instance.
        profile: As nvidia-smi prints it, `1g.10gb+me`.
        profile_id: NVML's id of the GPU instance's profile.
        start: First memory slice.
        size: Number of memory slices.
        memory: MiB.
    """

    uuid: str
    gpu_instance: int
    compute_instance: int
    profile: str
    profile_id: int
    start: int
    size: int
    memory: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int


def find_mig_devices(
    nvml: Nvml, handle: Any, *, minor: int, memory: int | None
) -> tuple[tuple[MigDevice, ...], tuple[Problem, ...]]:
    """The MIG devices of a GPU in MIG mode, and why others are not among them (`gpu-left-out`).

    Args:
        nvml: The session.
        handle: NVML's of the GPU.
        minor: The GPU's.
        memory: Bytes of the GPU, of which profiles have their names; None where NVML does not tell.
    """
    pynvml = nvml.pynvml
    found = []
    problems = []
    for index in range(int(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle))):
        what = f"MIG device {index} of gpu-{minor}"
        try:
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError as error:
            if error.value not in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT):
                problems.append(left_out(what, f"does not answer: {error}"))
            continue
        try:
            found.append(_read(pynvml, handle, mig, memory))
        except (pynvml.NVMLError, UnicodeError) as error:
            problems.append(left_out(what, f"does not answer: {error}"))
        except LookupError as error:
            problems.append(
                left_out(what, str(error.args[0]), "make it with `nvidia-smi mig -cgi PROFILE -C`")
            )
    if not found and not problems:
        hint = "make MIG devices with `nvidia-smi mig -cgi PROFILE -C`, or leave MIG mode"
        problems.append(left_out(f"gpu-{minor}", "is in MIG mode and has no MIG device", hint))
    return tuple(found), tuple(problems)


def _read(pynvml: Any, handle: Any, mig: Any, memory: int | None) -> MigDevice:
    instance = pynvml.nvmlDeviceGetGpuInstanceById(handle, pynvml.nvmlDeviceGetGpuInstanceId(mig))
    info = pynvml.nvmlGpuInstanceGetInfo(instance)
    compute = pynvml.nvmlComputeInstanceGetInfo(
        pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, pynvml.nvmlDeviceGetComputeInstanceId(mig))
    )
    shape, profile = _profile(pynvml, handle, info.profileId)
    if memory is None:
        raise LookupError("its profile has no name, for NVML does not tell the GPU's memory")
    slices, suffix = _SHAPES[shape]
    if slices not in _compute_slices(pynvml, instance, compute.profileId):
        raise LookupError(f"its compute instance is not as large as its GPU instance of {slices} slices")
    return MigDevice(
        uuid=str(pynvml.nvmlDeviceGetUUID(mig)),
        gpu_instance=int(info.id),
        compute_instance=int(compute.id),
        profile=f"{slices}g.{_gigabytes(int(profile.memorySizeMB), memory)}gb{suffix}",
        profile_id=int(info.profileId),
        start=int(info.placement.start),
        size=int(info.placement.size),
        memory=int(profile.memorySizeMB),
        multiprocessors=int(profile.multiprocessorCount),
        copy_engines=int(profile.copyEngineCount),
        decoders=int(profile.decoderCount),
        encoders=int(profile.encoderCount),
        jpeg_engines=int(profile.jpegCount),
        ofa_engines=int(profile.ofaCount),
    )


def _profile(pynvml: Any, handle: Any, profile_id: int) -> tuple[str, Any]:
    """Find the profile of NVML that has an id."""
    for shape in _SHAPES:
        number = getattr(pynvml, f"NVML_GPU_INSTANCE_PROFILE_{shape}")
        profile = _known(pynvml, "nvmlDeviceGetGpuInstanceProfileInfo", handle, number)
        if profile is not None and profile.id == profile_id:
            return shape, profile
    raise LookupError(f"its profile, number {profile_id}, is not known to this release")


def _compute_slices(pynvml: Any, instance: Any, profile_id: int) -> set[int]:
    shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    found = set()
    for name, slices in _COMPUTE_SLICES.items():
        number = getattr(pynvml, f"NVML_COMPUTE_INSTANCE_PROFILE_{name}")
        ask = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
        profile = _known(pynvml, ask, instance, number, shared)
        if profile is not None and profile.id == profile_id:
            found.add(slices)
    return found


def _known(pynvml: Any, function: str, *arguments: Any) -> Any:
    """NVML's record of a profile; None where the GPU does not have it. Older libraries have the first version alone."""
    for edition in (2, 1):
        try:
            return getattr(pynvml, function)(*arguments, version=edition)
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                continue
            if error.value in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT):
                return None
            raise
    return None


def _gigabytes(profile_mib: int, total: int) -> int:
    """The number in a profile's name: eighths of the GPU's memory, rounded up, of its GiB (getMigMemorySizeGB of go-nvlib)."""
    share = math.ceil(profile_mib * 1024**2 / total * 8) / 8
    gigabytes = share * -(-total // 1024**3)
    # Go rounds halves away from zero, Python to even numbers.
    return math.floor(gigabytes + 0.5)
