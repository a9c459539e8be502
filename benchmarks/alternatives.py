"""Programs of others that candidates run, each had once and left out by name where it cannot be had."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".cache" / "benchmarks"
PINS = ROOT / "requirements" / "bench.txt"

_reasons: list[str] = []


def left_out() -> tuple[str, ...]:
    """Why candidates are missing, so far."""
    return tuple(_reasons)


def has_node() -> bool:
    """Whether Node.js, on which cdk8s runs, is there; else it is left out."""
    if shutil.which("node") is None:
        leave_out("cdk8s: it runs on Node.js, and node is not on PATH")
        return False
    return True


def can_run_a_node() -> bool:
    """Whether what a real node is made of is built, and may be started; else it is left out."""
    parts = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd")
    missing = [name for name in parts if built(name) is None]
    if os.geteuid() != 0:
        leave_out("pods on a real node: only root may start one")
    return not missing and os.geteuid() == 0


@functools.cache
def python_of_alternatives() -> Path | None:
    """The Python of an environment with the alternatives, from the hashed pins; None, with a reason, if it cannot be."""
    home = FOLDER / "venv"
    python = home / "bin" / "python"
    # Written last, so that an installation that broke off is made again, and so is one of other pins.
    stamp = home / "pins.sha256"
    pins = hashlib.sha256(PINS.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == pins:
        return python
    uv = Path(sys.executable).parent / "uv"
    try:
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", PINS], check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        leave_out(f"cdk8s and kubernetes-validate: their environment cannot be made ({error})")
        return None
    stamp.write_text(pins)
    return python


def built(name: str) -> Path | None:
    """A binary that `make tools` built; None, with a reason, where it is not built."""
    from tools.build import binary
    from tools.errors import ToolError

    try:
        return binary(name)
    except ToolError:
        leave_out(f"{name}: not built (python -m tools.build --only {name})")
        return None


def leave_out(reason: str) -> None:
    """Remember why a candidate is missing."""
    if reason not in _reasons:
        _reasons.append(reason)
