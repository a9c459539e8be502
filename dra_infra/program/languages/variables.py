"""Environment variables of a program in another language, and what Pulumi's SDKs read from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from dra_infra.program.project import Project


def find_module_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder in which Go keeps modules (cmd/go, GOMODCACHE)."""
    if named := environment.get("GOMODCACHE"):
        return Path(named)
    workspace = environment.get("GOPATH", "").split(os.pathsep)[0]
    return Path(workspace or Path(environment.get("HOME") or "/", "go"), "pkg", "mod")


def environment_for(project: Project) -> dict[str, str]:
    """Return the environment of this process, without settings for Pulumi's CLI, with what environments of the stack set."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    return {
        **own,
        **project.variables,
        # Plugins are neither looked for nor installed.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def settings_for(project: Project, address: str) -> dict[str, str]:
    """Return what the SDK of Go reads (sdk/go/pulumi/run.go, getEnvInfo); that of Node.js reads the settings of the stack alike.

    Args:
        project: The project.
        address: Where monitor and engine are reached.
    """
    return {
        "PULUMI_ORGANIZATION": "organization",
        "PULUMI_PROJECT": project.name,
        "PULUMI_ROOT_DIRECTORY": str(project.root),
        "PULUMI_STACK": project.stack,
        "PULUMI_CONFIG": json.dumps(dict(project.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps([*project.secret_keys]),
        "PULUMI_PARALLEL": "1",
        "PULUMI_DRY_RUN": "true",
        "PULUMI_MONITOR": address,
        "PULUMI_ENGINE": address,
    }
