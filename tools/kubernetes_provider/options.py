"""Options of the provider: what stack configuration, an explicit provider or the environment may say."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Final

from tools.kubernetes_provider.api_server import REQUEST_SECONDS
from tools.kubernetes_provider.values import Object, Value, reveal

REFUSED: Final = {
    "helmReleaseSettings": "choosing Helm's storage, plugins and repositories is not part of the stand-in provider",
    "renderYamlToDirectory": "rendering manifests is not part of the stand-in provider",
    "skipUpdateUnreachable": "skipping unreachable clusters is not part of the stand-in provider",
    "upsertExistingObjects": "taking over existing objects is not part of the stand-in provider",
}
"""Options that would change what happens and that the stand-in does not know; all others are accepted."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that the stand-in acts on; names are the vendor's."""

    kubeconfig: str = field(default="", repr=False)
    context: str = ""
    cluster: str = ""
    namespace: str = ""
    config_maps_mutable: bool = False
    secrets_mutable: bool = False
    force_patches: bool = False
    delete_unreachable: bool = False
    request_seconds: float = REQUEST_SECONDS


def read_options(arguments: Object) -> Options:
    """Read the provider's arguments; an environment variable counts where an argument is missing."""
    given = reveal(arguments)

    def text(name: str) -> str:
        value = given.get(name)
        return value if isinstance(value, str) else ""

    def flag(name: str, variable: str) -> bool:
        value = given.get(name)
        return _is_true(os.environ.get(variable) if value is None else value)

    return Options(
        kubeconfig=text("kubeconfig"),
        context=text("context"),
        cluster=text("cluster"),
        namespace=text("namespace"),
        config_maps_mutable=flag("enableConfigMapMutable", "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE"),
        secrets_mutable=flag("enableSecretMutable", "PULUMI_K8S_ENABLE_SECRET_MUTABLE"),
        force_patches=flag("enablePatchForce", "PULUMI_K8S_ENABLE_PATCH_FORCE"),
        delete_unreachable=flag("deleteUnreachable", "PULUMI_K8S_DELETE_UNREACHABLE"),
        request_seconds=_request_seconds(given.get("kubeClientSettings")),
    )


def find_refused(arguments: Object) -> dict[str, str]:
    """Return the options that the stand-in cannot honour, with the reason for each."""
    given = reveal(arguments)
    refused = {
        name: reason for name, reason in REFUSED.items() if given.get(name) not in (None, "", False, "false")
    }
    if given.get("enableServerSideApply") in (False, "false"):
        refused["enableServerSideApply"] = "client-side apply is not part of the stand-in provider"
    return refused


def _is_true(value: Value) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _request_seconds(settings: Value) -> float:
    if isinstance(settings, str) and settings:
        try:
            settings = json.loads(settings)
        except ValueError:
            return REQUEST_SECONDS
    timeout = settings.get("timeout") if isinstance(settings, dict) else None
    return float(timeout) if isinstance(timeout, int | float) and timeout > 0 else REQUEST_SECONDS
