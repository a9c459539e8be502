"""The one kind of object that is written to a cluster: DeviceTaintRules, of `dra-infra drain`.

`Session` can only GET. Nothing here takes a path, so that nothing else can be written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from dra_infra.client.kinds import TAINT_RULES
from dra_infra.client.kubeconfig import Account
from dra_infra.client.refusals import shorten, strange_answer
from dra_infra.client.session import Answer, name_content
from dra_infra.client.transport import Transport
from dra_infra.documents.json_texts import ForeignJsonError, read_foreign_json
from dra_infra.errors import ClusterError, Problem

_LARGEST: Final = 4 * 1024 * 1024
"""Bytes of an answer: a rule has at most 1.5 MiB, as every object in etcd."""


class TaintRules:
    """Reads, makes, changes and deletes DeviceTaintRules by name.

    Args:
        account: Where, and as whom.
        version: Version of resource.k8s.io in which the cluster serves them.
        environment: May name proxies.

    Raises:
        ClusterError: The codes of `Session`; from requests also `cluster-forbidden`, and `drain-refused` where the server takes
            a rule for wrong, or it was changed by somebody else meanwhile.
    """

    def __init__(self, account: Account, version: str, environment: Mapping[str, str] = os.environ) -> None:
        self._account = account
        self._version = version
        self._transport = Transport(account, environment, largest=_LARGEST)

    def get(self, name: str) -> dict[str, Any] | None:
        """Returns a rule as it is now; None where there is none."""
        return self._ask("GET", name)

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make a rule, in the version that the cluster serves; returns it as the server stored it."""
        api_version = TAINT_RULES.api_version(self._version)
        made = self._ask("POST", "", {**manifest, "apiVersion": api_version})
        return made or {}

    def set_effect(self, rule: Mapping[str, Any], effect: str) -> dict[str, Any]:
        """Give the taint of a rule another effect, unless the rule is not any more what was read."""
        metadata = rule["metadata"]
        known = {key: metadata[key] for key in ("uid", "resourceVersion")}
        return (
            self._ask("PATCH", metadata["name"], {"metadata": known, "spec": {"taint": {"effect": effect}}})
            or {}
        )

    def delete(self, rule: Mapping[str, Any]) -> None:
        """Delete a rule, and no other one of its name; one that is gone already is not missed."""
        metadata = rule["metadata"]
        self._ask("DELETE", metadata["name"], {"preconditions": {"uid": metadata["uid"]}})

    def _ask(self, method: str, name: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        path = TAINT_RULES.path(self._version) + (f"/{quote(name, safe='')}" if name else "")
        with self._transport.request(
            method,
            path,
            {},
            read_timeout=self._account.request_timeout,
            total_timeout=self._account.request_timeout,
            body=None if body is None else json.dumps(body).encode(),
            content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
        ) as response:
            answer = Answer(status=response.status, body=self._transport.body(response, path))
        if answer.status == 404 and method in ("GET", "DELETE"):
            return None
        if answer.status in (403, 409, 422):
            raise ClusterError([_refusal(answer, method, name)])
        try:
            found = read_foreign_json(answer.body)
        except ForeignJsonError as error:
            raise strange_answer(self._account.server, path, name_content(answer.body)) from error
        if answer.status not in (200, 201, 202) or not isinstance(found, dict):
            raise strange_answer(self._account.server, path, f"{answer.status} {answer.message}")
        return found


def _refusal(answer: Answer, method: str, name: str) -> Problem:
    path = f"DeviceTaintRule {name}" if name else "DeviceTaintRule"
    if answer.status == 403:
        return Problem(
            path=path,
            code="cluster-forbidden",
            message=f"it may not be written: {shorten(answer.message)}",
            hint='grant it in a ClusterRole: {apiGroups: ["resource.k8s.io"], resources: ["devicetaintrules"], '
            'verbs: ["get", "list", "create", "patch", "delete"]}',
        )
    if answer.status == 409 and method == "POST":
        hint = "somebody else made it meanwhile; run the command again"
    elif answer.status == 409:
        hint = "somebody else changed it meanwhile; look at it, and run the command again"
    else:
        hint = "an admission policy refuses it, or the server is of 1.34, which has no effect None: drains need 1.35"
    return Problem(path=path, code="drain-refused", message=shorten(answer.message), hint=hint)
