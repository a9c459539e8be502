"""A folder from which the real Pulumi engine runs offline: CLI, language hosts, provider, state, settings.

Nothing of the user's own Pulumi installation is read or written.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools import build
from tools.errors import ToolError

PROVIDER_VARIABLE: Final = "DRA_INFRA_PROVIDER"
"""Environment variable: `vendor` uses the vendor's Kubernetes provider, which must then be on PATH."""

HOST_VARIABLE: Final = "DRA_INFRA_HOST"
"""Environment variable: `vendor` uses the vendor's `pulumi-language-python`, which must then be on PATH."""

VENDOR: Final = "vendor"
STAND_IN: Final = "stand-in"

CLI_BINARIES: Final = ("pulumi", "pulumi-language-yaml", "helm", "kubectl")
"""On the PATH of every run; the stand-in provider installs charts with that helm, and builds kustomizations with that kubectl."""
TOOLS: Final = Path(__file__).resolve().parent
LANGUAGE_HOST: Final = TOOLS / "language_host" / "pulumi-language-python"
PROVIDER: Final = TOOLS / "kubernetes_provider" / "pulumi-resource-kubernetes"

SETTINGS: Final[Mapping[str, str]] = {
    # A command takes a fifth less of the processors' time; one that needs more than the limit collects.
    "GOGC": "off",
    "GOMEMLIMIT": "400MiB",
    "PULUMI_CONFIG_PASSPHRASE": "",
    "PULUMI_DEBUG_COMMANDS": "true",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
    "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "1",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
}
"""What keeps the CLI from asking anybody, and from collecting garbage; the debug commands are needed for `--event-log`."""

WARM_MODULES: Final = (
    "dra_infra.components.mig_partitions",
    "dra_infra.components.nvlink_groups",
    "dra_infra.components.platform",
    "dra_infra.components.shared_gpus",
    "pulumi.runtime.stack",
    "pulumi_kubernetes.apps.v1",
    "pulumi_kubernetes.batch.v1",
    "pulumi_kubernetes.core.v1",
    "pulumi_kubernetes.resource.v1",
    "tools.kubernetes_provider.provider",
    "tools.language_host.host",
)
"""For `warm_python`: language host, provider, and what programs use most."""

PASSED_ON: Final = ("LANG", "LC_ALL", "TMPDIR", "TZ")
"""Variables of the caller that a run may see."""


@dataclass(frozen=True, kw_only=True)
class PulumiHome:
    """Where the engine finds its parts.

    Args:
        directory: Holds everything else.
        pulumi: The CLI; its folder comes first on PATH, so hosts beside it cause no warning.
        provider: Folder for `plugins.providers[].path` of a `Pulumi.yaml`; None with the vendor's provider.
        host: Whose Python language host runs programs: `stand-in` or `vendor`.
        environment: The whole environment of a run.
    """

    directory: Path
    pulumi: Path
    provider: Path | None
    host: str
    environment: Mapping[str, str]

    @property
    def plugins(self) -> dict[str, object]:
        """The `plugins` block of a `Pulumi.yaml`, empty with the vendor's provider."""
        if self.provider is None:
            return {}
        return {"providers": [{"name": "kubernetes", "path": str(self.provider)}]}


def choose_provider(environment: Mapping[str, str]) -> str:
    """Return which Kubernetes provider *environment* asks for: `stand-in` or `vendor`.

    Raises:
        ValueError: It asks for something else.
    """
    return _choose(environment, PROVIDER_VARIABLE)


def choose_host(environment: Mapping[str, str]) -> str:
    """Return which Python language host *environment* asks for: `stand-in` or `vendor`.

    Raises:
        ValueError: It asks for something else.
    """
    return _choose(environment, HOST_VARIABLE)


def _choose(environment: Mapping[str, str], variable: str) -> str:
    chosen = environment.get(variable) or STAND_IN
    if chosen not in {STAND_IN, VENDOR}:
        raise ValueError(f"{variable}: {chosen!r} is neither {STAND_IN!r} nor {VENDOR!r}")
    return chosen


def assemble(
    directory: Path,
    *,
    python: Path | None = None,
    warm: Path | None = None,
    binaries: Callable[[str], Path] = build.binary,
    provider: str = STAND_IN,
    host: str = STAND_IN,
) -> PulumiHome:
    """Make *directory* a Pulumi home; harmless when repeated.

    Args:
        directory: Created if missing. State lies in it too, so a fresh one has no stacks.
        python: Interpreter with the SDK, for the hosts and for programs that name no virtual environment;
            default: this process's own.
        warm: Command of `warm_python`, which runs hosts and programs in that interpreter's place.
        binaries: Finds the CLI, the YAML host, helm and kubectl; the default takes what `make tools` built.
        provider: `stand-in`, or `vendor` for a plugin that the caller's PATH or Pulumi cache has.
        host: `stand-in`, or `vendor` for the `pulumi-language-python` that the caller's PATH has.

    Raises:
        ToolError: From *binaries*, when one is missing; and for a vendor's host that is not on PATH.
    """
    if host == VENDOR and shutil.which(LANGUAGE_HOST.name) is None:
        raise ToolError(
            f"{LANGUAGE_HOST.name}: not on PATH",
            hint=f"put the folder of an installed Pulumi on PATH, or leave {HOST_VARIABLE} out",
        )
    interpreter = python or Path(sys.executable)
    executables, plugins, state, user = (directory / name for name in ("bin", "plugins", "state", "user"))
    for folder in (executables, plugins, state, user):
        folder.mkdir(parents=True, exist_ok=True)
    for name in CLI_BINARIES:
        _place(binaries(name), executables / name)
    if host == STAND_IN:
        # The CLI takes the host beside it; without one it looks on PATH.
        _write_launcher(executables / LANGUAGE_HOST.name, warm or interpreter, LANGUAGE_HOST)
    _write_launcher(plugins / PROVIDER.name, warm or interpreter, PROVIDER)
    path = [str(executables), str(interpreter.parent), *_system_path(provider, host)]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {
        **SETTINGS,
        "HOME": str(user),
        "PATH": os.pathsep.join(path),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_HOME": _plugin_home(directory, provider),
    }
    if warm is not None:
        environment["PULUMI_PYTHON_CMD"] = str(warm)
    return PulumiHome(
        directory=directory,
        pulumi=executables / "pulumi",
        provider=plugins if provider == STAND_IN else None,
        host=host,
        environment=environment,
    )


def _place(source: Path, target: Path) -> None:
    """Put a large binary at *target*: the CLI looks for hosts beside its real path, so no symbolic link."""
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def _write_launcher(target: Path, interpreter: Path, script: Path) -> None:
    """Write an executable that runs *script* with *interpreter*, whatever PATH says."""
    target.write_text(f'#!/bin/sh\nexec {shlex.quote(str(interpreter))} -u {shlex.quote(str(script))} "$@"\n')
    target.chmod(0o755)


def _system_path(provider: str, host: str) -> list[str]:
    if VENDOR in {provider, host}:
        return [os.environ.get("PATH", os.defpath)]
    return ["/usr/local/bin", "/usr/bin", "/bin"]


def _plugin_home(directory: Path, provider: str) -> str:
    """Return the folder whose plugin cache counts; the vendor's plugin lies in the user's own."""
    if provider == VENDOR and os.environ.get("PULUMI_HOME"):
        return os.environ["PULUMI_HOME"]
    return str(Path("~/.pulumi").expanduser() if provider == VENDOR else directory / "pulumi")
