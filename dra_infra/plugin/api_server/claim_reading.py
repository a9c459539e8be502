"""Reads the claim that the kubelet asks for from the API server, checked, as what the driver is to prepare.

The object is data from outside: nothing of it becomes a part of a `Claim` that has not the form it should have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.client.kinds import CLAIMS
from dra_infra.client.objects import text
from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import POD_CLAIM_NAME, mapping, mappings
from dra_infra.kubernetes.api.limits import MAX_CONFIGS, MAX_ENTRIES, MAX_PARAMETERS, MAX_RESULTS
from dra_infra.kubernetes.api.names import is_dns_label, is_dns_subdomain
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.claims import Claim, ClaimDevice, ClaimReference, check_uid, is_uid

_SOURCES: Final = ("FromClass", "FromClaim")
"""Weakest first."""


class ClaimReader:
    """Reads the claims that the kubelet of a node names.

    Args:
        driver: Whose devices are looked at; a claim may have those of others too.
        node: Its name, which is also that of the driver's pool.
        whole_names_only: Whether a config that names a request with subrequests does not count for the chosen one, as
            with NVIDIA's driver, which compares names as they are (nvidia driver 25.3 to 0.5). Kubernetes means that it does.
    """

    def __init__(self, api: Api, *, driver: str, node: str, whole_names_only: bool = False) -> None:
        self._api = api
        self._driver = driver
        self._node = node
        self._whole_names_only = whole_names_only

    def read(self, reference: ClaimReference) -> Claim:
        """The claim as it is allocated now.

        Raises:
            PluginError: `invalid-claim-uid`, `claim-gone`, `claim-made-anew`, `claim-without-allocation`,
                `claim-not-reserved`, `claim-no-device`, `claim-other-node`, `claim-malformed`, and the codes of `Api`.
        """
        check_uid(reference.uid)
        if not is_dns_label(reference.namespace) or not is_dns_subdomain(reference.name):
            raise PluginError.of(str(reference)[:300], "claim-malformed", "no claim can be called so")
        claim = self._api.read(
            CLAIMS,
            reference.name,
            reference.namespace,
            take=lambda item: self.claim_of(item, reference),
        )
        if claim is None:
            message = "there is no such claim any more"
            raise PluginError.of(
                str(reference), "claim-gone", message, "the pod that had it was deleted, most likely"
            )
        return claim

    def claim_of(self, item: Mapping[str, Any], reference: ClaimReference) -> Claim:
        """The claim that an object of the API is.

        Raises:
            PluginError: As `read`.
        """
        path = str(reference)
        metadata, status = mapping(item.get("metadata")), mapping(item.get("status"))
        if metadata.get("uid") != reference.uid:
            message = f"it was made anew: the one with the UID {reference.uid} is gone"
            raise PluginError.of(
                path, "claim-made-anew", message, "the kubelet asks again with the new one's UID"
            )
        allocation = status.get("allocation")
        if not isinstance(allocation, Mapping):
            hint = "the scheduler allocates it when a pod that uses it is placed"
            raise PluginError.of(path, "claim-without-allocation", "it has no allocation", hint)
        if not mappings(status.get("reservedFor")):
            hint = "kube-controller-manager or the scheduler reserves it for a pod; see whether both run"
            raise PluginError.of(path, "claim-not-reserved", "it is allocated, and reserved for nobody", hint)
        devices = tuple(sorted(self._devices(path, allocation)))
        if not devices:
            message = f"it has no device of the driver {self._driver}"
            raise PluginError.of(path, "claim-no-device", message, "another driver's plugin prepares it")
        return Claim(
            uid=reference.uid,
            namespace=reference.namespace,
            name=reference.name,
            devices=devices,
            pod_claim_name=_label(mapping(metadata.get("annotations")).get(POD_CLAIM_NAME)),
        )

    def _devices(self, path: str, allocation: Mapping[str, Any]) -> Iterator[ClaimDevice]:
        devices = mapping(allocation.get("devices"))
        results = _listed(path, devices.get("results"), "results", MAX_RESULTS)
        configs = _listed(path, devices.get("config"), "config", MAX_CONFIGS)
        # One text in memory for all devices: 32 copies of 64 long ones would be 20 MiB.
        texts: dict[str, str] = {}
        for index, result in enumerate(results):
            if result.get("driver") != self._driver:
                continue
            where = f"{path}: status.allocation.devices.results[{index}]"
            found = self._configs(path, configs, text(result.get("request")))
            device = _read(
                where, result, tuple((texts.setdefault(each, each), named) for each, named in found)
            )
            if device.pool != self._node or not _selects(allocation.get("nodeSelector"), self._node):
                message = f"its device {device.pool}/{device.device} is not on this node, {self._node}"
                hint = "the pod was put on the node by hand; let the scheduler place it"
                raise PluginError.of(path, "claim-other-node", message, hint)
            yield device

    def _configs(
        self, path: str, configs: list[Mapping[str, Any]], request: str
    ) -> Iterator[tuple[str, bool]]:
        """Parameters for the device of a request, what decides last: of one source as they are listed.

        Yields:
            The parameters, and whether they are meant for this request by its name.
        """
        for source in _SOURCES:
            for index, config in enumerate(configs):
                opaque = mapping(config.get("opaque"))
                if config.get("source") == source and opaque.get("driver") == self._driver:
                    where = f"{path}: status.allocation.devices.config[{index}]"
                    requests = config.get("requests")
                    if self._is_for(where, requests, request):
                        # The scheduler of 1.37 names none where it would name all, those of classes as well.
                        yield _parameters(where, opaque.get("parameters")), bool(requests)

    def _is_for(self, path: str, requests: object, request: str) -> bool:
        names = requests or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _malformed(path, "its requests are no list of names")
        main = request if self._whole_names_only else request.partition("/")[0]
        return not names or request in names or main in names


def _read(path: str, result: Mapping[str, Any], configs: tuple[tuple[str, bool], ...]) -> ClaimDevice:
    request, slash, sub = text(result.get("request")).partition("/")
    pool, device = text(result.get("pool")), text(result.get("device"))
    share = result.get("shareID") or ""
    admin = result.get("adminAccess") or False
    if not is_dns_label(request) or (slash and not is_dns_label(sub)):
        raise _malformed(path, "its request has no name")
    if not is_dns_label(device) or not pool:
        raise _malformed(path, "its device has no name")
    if share and not (isinstance(share, str) and is_uid(share)):
        raise _malformed(path, "its shareID is no UUID")
    if not isinstance(admin, bool):
        raise _malformed(path, "its adminAccess is neither true nor false")
    return ClaimDevice(
        pool=pool,
        device=device,
        request=request,
        subrequest=sub,
        share_id=share,
        admin_access=admin,
        configs=tuple(parameters for parameters, _ in configs),
        named=tuple(is_named for _, is_named in configs),
        capacity=_capacity(path, result.get("consumedCapacity")),
    )


def _capacity(path: str, consumed: object) -> tuple[tuple[str, str], ...]:
    if consumed is None:
        return ()
    if not isinstance(consumed, Mapping) or len(consumed) > MAX_ENTRIES:
        raise _malformed(path, "its consumedCapacity is no map of amounts")
    pairs = sorted(consumed.items())
    if not all(isinstance(each, str) and 0 < len(each) <= 400 for pair in pairs for each in pair):
        raise _malformed(path, "its consumedCapacity has what is no amount")
    return tuple(pairs)


def _parameters(path: str, parameters: object) -> str:
    if not isinstance(parameters, Mapping):
        raise _malformed(path, "its opaque.parameters are no object")
    written = json.dumps(parameters, separators=(",", ":"))
    # Twice: the server counts the bytes as they were sent, and \u escapes of ours may take more.
    if len(written) > 2 * MAX_PARAMETERS:
        raise _malformed(path, f"its opaque.parameters have more than {MAX_PARAMETERS} bytes")
    return written


def _listed(path: str, found: object, name: str, most: int) -> list[Mapping[str, Any]]:
    if found is None:
        return []
    listed = mappings(found)
    if not isinstance(found, list) or len(listed) != len(found) or len(found) > most:
        raise _malformed(f"{path}: status.allocation.devices.{name}", f"is no list of at most {most} objects")
    return listed


def _selects(selector: object, node: str) -> bool:
    """True unless a node selector names another node; labels are the scheduler's to compare."""
    terms = mappings(mapping(selector).get("nodeSelectorTerms"))
    return not terms or any(_may_be(term, node) for term in terms)


def _may_be(term: Mapping[str, Any], node: str) -> bool:
    return all(
        node in values
        for each in mappings(term.get("matchFields"))
        if each.get("key") == "metadata.name" and each.get("operator") == "In"
        for values in [each.get("values")]
        if isinstance(values, list)
    )


def _label(value: object) -> str:
    found = text(value)
    return found if is_dns_label(found) else ""


def _malformed(path: str, message: str) -> PluginError:
    return PluginError.of(path, "claim-malformed", message, "no API server stores that: see what is between")
