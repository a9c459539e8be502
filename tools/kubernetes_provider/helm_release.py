"""What helm does with one release: look it up, render, install, upgrade and uninstall it.

Source of what the inputs mean: `provider/pkg/provider/helm_release.go` of pulumi/pulumi-kubernetes, July 2026.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.kubernetes_provider.api_server import Capabilities
from tools.kubernetes_provider.helm_charts import LOOK_SECONDS, ChartSource
from tools.kubernetes_provider.helm_command import HelmError, HelmHome

DEFAULT_SECONDS: Final = 300
"""Of `timeout`, which bounds each thing that helm waits for."""

WAITS: Final = 3
"""Things that helm may wait for one after the other: hooks before, the objects, hooks after."""

OTHER_SECONDS: Final = 60
"""For what helm does beside waiting."""

NOT_FOUND: Final = "release: not found"

INSTALL_OPTIONS: Final = {
    "atomic": "--atomic",
    "createNamespace": "--create-namespace",
    "dependencyUpdate": "--dependency-update",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "disableWebhooks": "--no-hooks",
    "renderSubchartNotes": "--render-subchart-notes",
    "replace": "--replace",
    "skipCrds": "--skip-crds",
    "takeOwnership": "--take-ownership",
}
UPGRADE_OPTIONS: Final = {
    "atomic": "--atomic",
    "cleanupOnFail": "--cleanup-on-fail",
    "dependencyUpdate": "--dependency-update",
    # Not `disableWebhooks`: the vendor's provider reads another input when it upgrades.
    "disableCRDHooks": "--no-hooks",
    "forceUpdate": "--force",
    "recreatePods": "--recreate-pods",
    "renderSubchartNotes": "--render-subchart-notes",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
    "takeOwnership": "--take-ownership",
}

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LiveRelease:
    """A release that the cluster has.

    Args:
        chart: Name of the chart.
        version: Of the chart.
        status: `deployed`, `failed`, `pending-install`...
        values: That were given, without the chart's own.
        manifest: The objects, as YAML documents; those of `crds/` and hooks are not among them.
    """

    name: str
    namespace: str
    chart: str
    version: str
    app_version: str
    revision: int
    status: str
    values: Json
    manifest: str


def find(home: HelmHome, namespace: str, name: str) -> LiveRelease | None:
    """Return a release, or None when the cluster has none of that name.

    Raises:
        HelmError: Helm cannot tell.
    """
    place = (name, "--namespace", namespace, "--output", "json")
    try:
        found = json.loads(home.run("status", *place, seconds=LOOK_SECONDS, reading=True))
        about = json.loads(home.run("get", "metadata", *place, seconds=LOOK_SECONDS, reading=True))
    except HelmError as error:
        if str(error) == NOT_FOUND:
            return None
        raise
    return LiveRelease(
        name=found["name"],
        namespace=found["namespace"],
        chart=about["chart"],
        version=about["version"],
        app_version=about.get("appVersion") or "",
        revision=found["version"],
        status=found["info"]["status"],
        values=found.get("config") or {},
        manifest=found.get("manifest") or "",
    )


def render(
    home: HelmHome, source: ChartSource, inputs: Json, capabilities: Capabilities, *, upgrade: bool
) -> str:
    """Return the objects that an install or upgrade would send, as YAML documents; nothing is sent.

    CRDs of `crds/` are among them on an install only: an upgrade leaves them alone.

    Args:
        home: Homes for helm.
        source: Of the chart.
        inputs: Of the release, all known and in the clear.
        capabilities: Of the cluster.
        upgrade: Whether the release is there already.

    Raises:
        HelmError: The chart cannot be rendered with these values.
    """
    crds = () if upgrade or inputs.get("skipCrds") else ("--include-crds",)
    return _run(
        home,
        ("template", "--no-hooks", "--dry-run=server", *crds, *(("--is-upgrade",) if upgrade else ())),
        ("--kube-version", capabilities.version, "--api-versions", ",".join(capabilities.served)),
        source,
        inputs,
        seconds=LOOK_SECONDS,
    )


def install(home: HelmHome, source: ChartSource, inputs: Json, *, seconds: float) -> None:
    """Install a release and wait for its objects.

    Args:
        home: Homes for helm.
        source: Of the chart.
        inputs: Of the release, all known and in the clear.
        seconds: Until helm is stopped; 0 for what its own timeout makes likely.

    Raises:
        HelmError: The release was not installed, or is there and not ready.
    """
    options = (*_flags(inputs, INSTALL_OPTIONS), *_wait_options(inputs), *_text_options(inputs))
    _run(home, ("install", *options), (), source, inputs, seconds=seconds or _longest(inputs))


def upgrade(home: HelmHome, source: ChartSource, inputs: Json, *, seconds: float) -> None:
    """Upgrade a release and wait for its objects; arguments and errors as for `install`."""
    history = ("--history-max", str(inputs.get("maxHistory") or 0))
    options = (*_flags(inputs, UPGRADE_OPTIONS), *_wait_options(inputs), *_text_options(inputs), *history)
    _run(home, ("upgrade", *options), (), source, inputs, seconds=seconds or _longest(inputs))


def uninstall(home: HelmHome, inputs: Json, *, seconds: float) -> None:
    """Uninstall a release and, unless it says otherwise, wait until its objects are gone.

    Raises:
        HelmError: It was not uninstalled, or there is none of that name.
    """
    awaited = inputs.get("atomic") or not inputs.get("skipAwait")
    options = ("--wait", "--timeout", f"{_timeout(inputs)}s") if awaited else ()
    place = (inputs["name"], "--namespace", inputs["namespace"])
    home.run("uninstall", *place, *options, seconds=seconds or _longest(inputs))


def _run(
    home: HelmHome,
    command: tuple[str, ...],
    options: tuple[str, ...],
    source: ChartSource,
    inputs: Json,
    *,
    seconds: float,
) -> str:
    place = (inputs["name"], source.chart, "--namespace", inputs["namespace"])
    # JSON is YAML; on its standard input, values are in no file and no argument.
    text = json.dumps(inputs.get("values") or {})
    return home.run(*command, *place, *source.options, *options, "--values", "-", text=text, seconds=seconds)


def _flags(inputs: Json, options: dict[str, str]) -> tuple[str, ...]:
    return tuple(option for name, option in options.items() if inputs.get(name) is True)


def _wait_options(inputs: Json) -> tuple[str, ...]:
    timeout = ("--timeout", f"{_timeout(inputs)}s")
    if inputs.get("skipAwait"):
        return timeout
    return (*timeout, "--wait", *(("--wait-for-jobs",) if inputs.get("waitForJobs") else ()))


def _text_options(inputs: Json) -> tuple[str, ...]:
    description = ("--description", str(inputs["description"])) if inputs.get("description") else ()
    command = str(inputs.get("postrender") or "")
    path = str(Path(command).absolute()) if "/" in command else command
    return (*description, *(("--post-renderer", path) if path else ()))


def _timeout(inputs: Json) -> int:
    return int(inputs.get("timeout") or DEFAULT_SECONDS)


def _longest(inputs: Json) -> float:
    return WAITS * _timeout(inputs) + OTHER_SECONDS
