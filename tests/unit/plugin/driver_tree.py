"""The files that NVIDIA's kernel driver has on a node, in a folder; device files are links to one that is always there."""

from __future__ import annotations

from pathlib import Path

VERSION = "570.86.05"
"""As NVML writes it: with a zero that the published version lacks."""

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def make_tree(root: Path, *, gpus: int = 2) -> Path:
    """Device files, libraries with their links, programs, and what the kernel module says of itself."""
    dev = root / "dev"
    dev.mkdir(parents=True)
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", *(f"nvidia{minor}" for minor in range(gpus))):
        (dev / name).symlink_to("/dev/null")
    libraries = root / LIBRARIES
    (libraries / "vdpau").mkdir(parents=True)
    for name in ("libcuda", "libnvidia-ml", "vdpau/libvdpau_nvidia"):
        (libraries / f"{name}.so.{VERSION}").touch()
        # As packages have it: a link that starts at the root, and one to it.
        link = libraries / f"{name}.so.1"
        link.symlink_to(f"/{LIBRARIES}/{name}.so.{VERSION}")
        (libraries / f"{name}.so").symlink_to(link.name)
    (libraries / "libcuda.so.550.54.14").touch()
    (libraries / "libz.so.1").touch()
    (root / "lib").symlink_to("usr/lib")
    (root / "usr/bin").mkdir()
    (root / "usr/bin/nvidia-smi").touch()
    make_proc(root)
    return root


def make_proc(root: Path, *, minor: int = 0, gi: int = 3, ci: int = 1) -> None:
    """What the kernel module says, with the capabilities of one MIG device: device files 30 and 31 of number 236."""
    caps = root / f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gi}"
    (caps / f"ci{ci}").mkdir(parents=True)
    for place, number in ((caps, 30), (caps / f"ci{ci}", 31)):
        (place / "access").write_text(
            f"DeviceFileMinor: {number}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
        )
    (root / "proc/devices").write_text(
        "Character devices:\n  1 mem\n195 nvidia\n236 nvidia-caps\n237 nvidia-caps-imex-channels\n\n"
        "Block devices:\n259 blkext\n"
    )
