"""Sources of Go modules at the versions that belong to a Kubernetes release, in Go's own module cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools import toolsets
from tools.diagnosis import diagnose, redact
from tools.errors import ToolError

KUBERNETES: Final = "k8s.io/kubernetes"
_VERSION: Final = re.compile(r"v1(\.\d+\.\d+(?:-[a-z]+\.\d+)?)")
_DOWNLOAD_SECONDS: Final = 600
_MOVED: Final = {"github.com/google/cel-go": "cel.dev/cel-go"}
"""Modules that a later Kubernetes requires under another path, with the same files."""


def module_cache() -> Path | None:
    """Return the folder of Go's module cache; None where there is no Go and the environment names none."""
    named = os.environ.get("GOMODCACHE")
    if named:
        return Path(named)
    if shutil.which("go") is None:
        return None
    done = subprocess.run(
        ["go", "env", "GOMODCACHE"],
        env=toolsets.build_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Path(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None


@dataclass(kw_only=True)
class Sources:
    """The sources of one Kubernetes release.

    Args:
        release: Such as `v1.37.1`.
        cache: Go's module cache.
        may_download: Whether what is not in the cache is fetched from the module proxy.
    """

    release: str
    cache: Path
    may_download: bool = False
    _folders: dict[str, Path | None] = field(default_factory=dict, repr=False)
    _not_required: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        """Check the version before anything is asked for it.

        Raises:
            ToolError: When it is none.
        """
        if _VERSION.fullmatch(self.release) is None:
            raise ToolError(
                f"version: {self.release!r} is not one of Kubernetes", hint="write it like v1.36.4"
            )

    def folder(self, module: str) -> Path | None:
        """Return the folder of a module's sources; None where it is not in the cache and may not be fetched.

        Raises:
            ToolError: When the module proxy refuses it.
        """
        if module not in self._folders:
            self._folders[module] = self._find(module)
        return self._folders[module]

    def read(self, module: str, path: str) -> str | None:
        """Return a file's text; None where the module has no such file, or where the release does not require the module.

        Raises:
            FileNotFoundError: When the module is not in the cache and may not be fetched.
            ToolError: When the module proxy refuses it.
        """
        folder = self.folder(module)
        if module in self._not_required:
            return None
        if folder is None:
            raise FileNotFoundError(f"{module} of {self.release} is not in Go's module cache")
        file = folder / path
        return file.read_text() if file.is_file() else None

    def _find(self, module: str) -> Path | None:
        if module == KUBERNETES:
            return self._at(module, self.release)
        kubernetes = self.folder(KUBERNETES)
        if kubernetes is None:
            return None
        text = (kubernetes / "go.mod").read_text()
        for path in (module, *filter(None, [_MOVED.get(module)])):
            found = re.search(rf"^\t{re.escape(path)} (v\S+)", text, re.MULTILINE)
            if found is not None:
                staging = self.release.replace("v1.", "v0.", 1)
                return self._at(path, staging if found[1] == "v0.0.0" else found[1])
        self._not_required.add(module)
        return None

    def _at(self, module: str, version: str) -> Path | None:
        folder = self.cache / f"{module}@{version}"
        # Go marks a folder before it unpacks a module into it, and takes the mark away at the end (cmd/go/internal/modfetch/fetch.go).
        # So the folder comes first: it is whole if it has no mark afterwards.
        if (
            folder.is_dir()
            and not (self.cache / "cache/download" / module / "@v" / f"{version}.partial").exists()
        ):
            return folder
        return self._download(module, version) if self.may_download else None

    def _download(self, module: str, version: str) -> Path:
        if shutil.which("go") is None:
            raise ToolError("go is not on PATH", hint="install the Go version that tools/*/go.mod names")
        environment = {**toolsets.build_environment(), "GOMODCACHE": str(self.cache)}
        try:
            done = subprocess.run(
                ["go", "mod", "download", "-json", f"{module}@{version}"],
                cwd=self.cache if self.cache.is_dir() else None,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=_DOWNLOAD_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"{module}@{version}: no answer in {_DOWNLOAD_SECONDS} s") from error
        if done.returncode != 0:
            raise _refused(f"{module}@{version}", done)
        return Path(json.loads(done.stdout)["Dir"])


def _refused(module: str, done: subprocess.CompletedProcess[str]) -> ToolError:
    """Go's own words: it answers with JSON that has an error, also for a release that needs a newer Go."""
    try:
        reason = str(json.loads(done.stdout)["Error"])
    except (ValueError, KeyError, TypeError):
        reason = done.stderr
    found = diagnose(reason, done.returncode)
    return ToolError(f"{module} cannot be had: {redact(reason).strip()[:500]}", hint=found.hint)
