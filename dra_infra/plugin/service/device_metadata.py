"""Files that tell a container what its devices are: their attributes, as the driver publishes them (KEP 5304).

Content and place in the container are those of Kubernetes' helper library (`kubeletplugin/metadata.go` and
`api/metadata` of k8s.io/dynamic-resource-allocation). The copy on the node is named by the claim's UID; there it is
by namespace and name, so that the end of a claim would take the file of a later one of that name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import Device
from dra_infra.kubernetes.api.names import is_dns_label, is_dns_subdomain
from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.claims import Claim, ClaimDevice, Edits, Mount, check_uid
from dra_infra.plugin.disk import LOOK, Folder, not_usable

VERSIONS: Final = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
"""Newest first: a reader takes the first that it knows. Kubernetes 1.37 has both, 1.36 the second."""

IN_CONTAINER: Final = "/var/run/kubernetes.io/dra-device-attributes"

_FILE: Final = "metadata.json"


class WithMetadata:
    """Devices of a back end, whose claims get metadata files besides.

    Args:
        back_end: Whose devices they are.
        folder: For the files, the same path for us and for the container runtime. Made when it is not there.
    """

    def __init__(self, back_end: BackEnd, folder: Path) -> None:
        self._back_end = back_end
        self._folder = folder

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """Prepare with the wrapped back end; the first device of each request mounts the request's file into the container.

        Raises:
            PluginError: `plugin-folder-not-usable`, `invalid-claim-name`, and the other's.
        """
        edits = list(self._back_end.prepare(claim))
        driver = self._back_end.driver
        known = {each.name: each for each in self._back_end.inventory().devices}
        for request, places in _by_request(claim).items():
            devices = [claim.devices[place] for place in places]
            text = "".join(
                as_go_writes(_document(version, claim, driver, devices, known)) for version in VERSIONS
            )
            inside = path_in_container(claim, request, driver)
            mount = Mount(host_path=str(self._write(claim, request, text)), container_path=inside)
            first = edits[places[0]]
            edits[places[0]] = replace(first, mounts=(*first.mounts, mount))
        return edits

    def release(self, claim: Claim) -> None:
        """Release with the wrapped back end, and remove the files."""
        self._back_end.release(claim)
        folder = self._folder / check_uid(claim.uid)
        with _explain_os_errors(folder):
            if os.path.lexists(folder):
                shutil.rmtree(folder)

    def _write(self, claim: Claim, request: str, text: str) -> Path:
        folder = self._folder / check_uid(claim.uid) / request
        with _explain_os_errors(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Whoever runs in the container reads it.
        Folder(folder, mode=0o644).replace(_FILE, text.encode())
        return folder / _FILE


def path_in_container(claim: Claim, request: str, driver: str) -> str:
    """Path in the container of the file about the devices of a request.

    Raises:
        PluginError: `invalid-claim-name`, for names that would lead elsewhere.
    """
    kind = "resourceclaims"
    name = claim.name
    if claim.pod_claim_name:
        kind = "resourceclaimtemplates"
        name = claim.pod_claim_name
    if not is_dns_label(request) or not is_dns_subdomain(name):
        raise PluginError.of(
            path=str(claim),
            code="invalid-claim-name",
            message=f"{name[:64]!r} with the request {request[:64]!r} makes no path",
            hint="the API server lets no claim be named so",
        )
    return f"{IN_CONTAINER}/{kind}/{name}/{request}/{driver}-metadata.json"


def as_go_writes(document: dict[str, Any]) -> str:
    """JSON as the encoder of Kubernetes lays it out: two spaces, and no letters that HTML has a use for."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text + "\n"


def _by_request(claim: Claim) -> dict[str, list[int]]:
    """Places of the claim's devices, by main request."""
    found: dict[str, list[int]] = {}
    for place, device in enumerate(claim.devices):
        found.setdefault(device.request, []).append(place)
    return found


def _document(
    version: str,
    claim: Claim,
    driver: str,
    devices: Sequence[ClaimDevice],
    known: dict[str, Device],
) -> dict[str, Any]:
    first = devices[0]
    name = f"{first.request}/{first.subrequest}" if first.subrequest else first.request
    return {
        "kind": "DeviceMetadata",
        "apiVersion": version,
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": claim.uid,
            "generation": 1,
        },
        **({"podClaimName": claim.pod_claim_name} if claim.pod_claim_name else {}),
        "requests": [
            {
                "name": name,
                "devices": [
                    {
                        "driver": driver,
                        "pool": each.pool,
                        "name": each.device,
                        **_attributes(known.get(each.device)),
                    }
                    for each in devices
                ],
            }
        ],
    }


def _attributes(device: Device | None) -> dict[str, Any]:
    """Sort attributes by name, as Go writes maps."""
    values = device.attributes if device else None
    if not values:
        return {}
    return {"attributes": {name: values[name].to_manifest() for name in sorted(values)}}


@contextmanager
def _explain_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = "cannot be used for the metadata of devices"
        raise not_usable(error.filename or path, what, error, LOOK) from error
