"""Stand in for the controller of NVIDIA's DRA driver, whose part pods of a ComputeDomain wait for."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Self

from dra_infra.specs.compute_domains import channel_template
from tools.cluster import Api, Manifest, WaitTimeoutError
from tools.errors import ToolError

COMPUTE_DOMAIN: Final = "resource.nvidia.com/v1beta1/ComputeDomain"
TEMPLATE: Final = "resource.k8s.io/v1/ResourceClaimTemplate"
WATCH_SECONDS: Final = 1.0
"""How long leaving the context may take."""


class ComputeDomainStandIn:
    """Make the claim template that each ComputeDomain names, while the context lasts.

    The real controller makes daemons and labels nodes too, and deletes the template by a finalizer; here the template
    is owned by the ComputeDomain, and goes with it.

    Raises:
        ToolError: On leaving the context, when the API server refused a template.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._ended = threading.Event()
        self._error: ToolError | None = None
        self._thread = threading.Thread(target=self._run, name="compute-domain-stand-in", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._error is None:
            return
        if error is None:
            raise self._error
        error.add_note(f"the stand-in for ComputeDomains ended early: {self._error}")

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._api.wait_for(COMPUTE_DOMAIN, self._serve, timeout=WATCH_SECONDS)
            except WaitTimeoutError:
                continue
            except ToolError as error:
                self._error = error
                return

    def _serve(self, domains: list[Manifest]) -> bool:
        for domain in domains:
            metadata = domain["metadata"]
            template = channel_template(domain)
            if template is None or "deletionTimestamp" in metadata:
                continue
            name = template["metadata"]["name"]
            namespace = metadata["namespace"]
            if self._api.find(TEMPLATE, name, namespace=namespace) is None:
                self._api.create(_completed(template, domain))
        return self._ended.is_set()


def is_made_here(template: Manifest) -> bool:
    """Whether a claim template is of this stand-in, and of no program."""
    return any(owner["kind"] == "ComputeDomain" for owner in template["metadata"].get("ownerReferences", []))


def _completed(template: Manifest, domain: Manifest) -> Manifest:
    """The template with what only the cluster knows: the UID of its ComputeDomain."""
    (config,) = template["spec"]["spec"]["devices"]["config"]
    config["opaque"]["parameters"]["domainID"] = domain["metadata"]["uid"]
    owner = {
        "apiVersion": domain["apiVersion"],
        "kind": domain["kind"],
        "name": domain["metadata"]["name"],
        "uid": domain["metadata"]["uid"],
        # So that a ComputeDomain that is deleted in the foreground waits for it.
        "blockOwnerDeletion": True,
    }
    return {**template, "metadata": {**template["metadata"], "ownerReferences": [owner]}}
