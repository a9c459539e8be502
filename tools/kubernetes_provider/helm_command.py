"""Runs the real `helm` binary: arguments as a list, homes of its own, a bounded time.

Vendor's provider: Helm as a library. The binary of the same version does the same things.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

BINARY: Final = "helm"

GRACE_SECONDS: Final = 10.0
"""For a helm that was asked to stop: it writes down that the release failed."""

PASSED_ON: Final = (
    "LANG",
    "LC_ALL",
    "PATH",
    "TMPDIR",
    "TZ",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
"""Variables of the provider that helm sees; none of `HELM_*` and `KUBECONFIG`, which would choose another cluster."""

HOMES: Final = {
    "HOME": "",
    "HELM_CACHE_HOME": "cache",
    "HELM_CONFIG_HOME": "config",
    "HELM_DATA_HOME": "data",
}


class HelmError(Exception):
    """Helm failed; the text is what it said, without its `Error:`."""


class Helm:
    """Helm on one cluster, or on none; safe to use from several threads."""

    def __init__(self, kubeconfig: str) -> None:
        """Use a cluster.

        Args:
            kubeconfig: Contents of a kubeconfig with one context; empty where there is no cluster.
        """
        self._kubeconfig = kubeconfig
        self._running: set[subprocess.Popen[str]] = set()
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self._stopped = False

    @contextmanager
    def home(self) -> Iterator[HelmHome]:
        """Give homes that nobody else uses, and take them away again: they may hold credentials."""
        with tempfile.TemporaryDirectory(prefix="dra-infra-helm-", ignore_cleanup_errors=True) as folder:
            self._folders.add(folder)
            try:
                kubeconfig = Path(folder, "kubeconfig")
                kubeconfig.touch(mode=0o600)
                kubeconfig.write_text(self._kubeconfig)
                yield HelmHome(self, Path(folder), kubeconfig)
            finally:
                self._folders.discard(folder)

    def stop(self) -> None:
        """Ask every helm that runs to stop, and start none that would change anything."""
        with self._lock:
            self._stopped = True
            running = tuple(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)

    def close(self) -> None:
        """Stop and leave nothing behind; for the end of the provider, whose threads are not waited for."""
        self.stop()
        for process in tuple(self._running):
            try:
                process.wait(GRACE_SECONDS / 4)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
        for folder in tuple(self._folders):
            shutil.rmtree(folder, ignore_errors=True)

    def start(
        self, command: list[str], *, folder: Path, environment: dict[str, str], reading: bool
    ) -> subprocess.Popen[str]:
        """Start a command that `stop` will find.

        Raises:
            HelmError: There is no such binary, or everything has been stopped.
        """
        with self._lock:
            if self._stopped and not reading:
                raise HelmError("cancelled")
            try:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    # Ctrl-C in a terminal is for the engine, which then asks the provider.
                    start_new_session=True,
                )
            except OSError as error:
                raise HelmError(
                    f"{BINARY} did not start: {error.strerror}; the stand-in provider runs the helm on PATH, "
                    "which `make tools` builds"
                ) from error
            self._running.add(process)
            return process

    def forget(self, process: subprocess.Popen[str]) -> None:
        """Note that a command has ended."""
        with self._lock:
            self._running.discard(process)


class HelmHome:
    """Homes for one or several commands that belong together; what one of them logs into, the next may use."""

    def __init__(self, helm: Helm, folder: Path, kubeconfig: Path) -> None:
        self._helm = helm
        self._folder = folder
        self._environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._environment |= {name: str(folder / below) for name, below in HOMES.items()}
        self._environment["KUBECONFIG"] = str(kubeconfig)

    def run(self, *arguments: str, seconds: float, text: str = "", reading: bool = False) -> str:
        """Return what `helm <arguments>` printed.

        Args:
            arguments: Without the binary. Secrets do not belong here: other users see them.
            seconds: Until it is stopped.
            text: Its standard input.
            reading: It changes nothing, so it may run after a stop, to see what that has left.

        Raises:
            HelmError: It failed, took too long or was stopped.
        """
        binary = shutil.which(BINARY, path=self._environment.get("PATH")) or BINARY
        process = self._helm.start(
            [binary, *arguments], folder=self._folder, environment=self._environment, reading=reading
        )
        try:
            printed, said = process.communicate(text, timeout=seconds)
        except subprocess.TimeoutExpired:
            said = _stop(process)
            raise HelmError(f"stopped after {seconds:g} s{f': {said}' if said else ''}") from None
        finally:
            self._helm.forget(process)
        if process.returncode:
            raise HelmError(_message(said) or f"exit code {process.returncode}")
        return printed


def _stop(process: subprocess.Popen[str]) -> str:
    _signal(process, signal.SIGTERM)
    try:
        return _message(process.communicate(timeout=GRACE_SECONDS)[1])
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        return _message(process.communicate()[1])


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Signal helm and what it started, such as a post-renderer: both hold the pipes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _message(said: str) -> str:
    """Return what helm says went wrong, from the line with `Error:` on; warnings come before it."""
    _, found, after = f"\n{said}".partition("\nError: ")
    return (after if found else said).strip()
