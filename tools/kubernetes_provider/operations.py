"""Creating, changing, reading and deleting one object of a cluster, for real or as a dry run."""

from __future__ import annotations

import threading
from typing import Any, Final

from tools.kubernetes_provider.api_server import ApiServer, NotServedError, RefusedError
from tools.kubernetes_provider.field_managers import CREATOR, must_force_preview, plan_takeover
from tools.kubernetes_provider.resource_types import GroupVersionKind, annotation
from tools.kubernetes_provider.waiting import wait_until_gone, wait_until_ready

SKIP_AWAIT: Final = "pulumi.com/skipAwait"
TIMEOUT_SECONDS: Final = "pulumi.com/timeoutSeconds"
PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"
FORCE: Final = "pulumi.com/patchForce"

DEFAULT_SECONDS: Final = 600.0
"""How long to wait for an object when neither its options nor its annotations say."""

RETRY_PAUSES_SECONDS: Final = (1.0, 2.0, 4.0, 8.0)
"""Pauses while a namespace or a definition that the same program creates is on its way."""

TAKEOVER_ATTEMPTS: Final = 5
"""Controllers write the status of young objects often; each write spoils one attempt."""

Json = dict[str, Any]


class Operations:
    """What the provider does to the objects of one API server."""

    def __init__(self, server: ApiServer, *, force: bool, cancelled: threading.Event) -> None:
        self._server = server
        self._force = force
        self._cancelled = cancelled

    def create(self, kind: GroupVersionKind, inputs: Json, *, seconds: float) -> Json:
        """Create an object and wait until it is ready.

        Raises:
            RefusedError: It was not created.
            NotServedError: The server does not know the kind.
            NotDoneError: It was created but did not become ready.
        """
        created = self._create_with_retries(kind, inputs)
        return self._wait(kind, inputs, created, seconds)

    def _create_with_retries(self, kind: GroupVersionKind, inputs: Json) -> Json:
        for pause in (*RETRY_PAUSES_SECONDS, None):
            try:
                return self._server.create(kind, inputs, manager=CREATOR, dry_run=False)
            except (RefusedError, NotServedError) as error:
                absent = isinstance(error, NotServedError) or error.reason == "NotFound"
                if not absent or pause is None or self._cancelled.wait(pause):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def preview_create(self, kind: GroupVersionKind, inputs: Json) -> Json | None:
        """Return the object as a create would make it, or None when the server cannot say.

        It cannot when the kind or the namespace is not there yet, when dry runs are forbidden, and when
        the name is taken, which a replacement that deletes first may free.

        Raises:
            RefusedError: A create would be refused.
        """
        try:
            made = self._server.create(kind, inputs, manager=CREATOR, dry_run=True)
        except NotServedError:
            return None
        except RefusedError as refusal:
            namespace_missing = refusal.reason == "NotFound" and refusal.about == "namespaces"
            if refusal.reason in {"Forbidden", "AlreadyExists"} or namespace_missing:
                return None
            raise
        # A program that read the status of a dry run would take it for the truth.
        made.pop("status", None)
        return made

    def update(
        self, kind: GroupVersionKind, inputs: Json, *, namespace: str, name: str, manager: str, seconds: float
    ) -> Json:
        """Apply *inputs* to an existing object and wait until it is ready.

        Raises:
            RefusedError: The object stays as it was. Reason `Conflict`: another manager owns a field.
            NotDoneError: It was changed but did not become ready.
        """
        live = self._take_over(kind, namespace, name, manager)
        body = self._body(kind, inputs, namespace, name)
        force = self._is_forced(inputs, live)
        applied = self._server.apply(kind, body, manager=manager, force=force, dry_run=False)
        return self._wait(kind, inputs, applied, seconds)

    def preview_update(
        self, kind: GroupVersionKind, inputs: Json, *, namespace: str, name: str, manager: str
    ) -> Json | None:
        """Return the object as an update would leave it, or None when the server cannot say.

        Raises:
            RefusedError: An update would be refused.
        """
        try:
            live = self._server.get(kind, namespace, name)
            body = self._body(kind, inputs, namespace, name)
            force = self._is_forced(inputs, live) or must_force_preview(live)
            return self._server.apply(kind, body, manager=manager, force=force, dry_run=True)
        except NotServedError:
            return None
        except RefusedError as refusal:
            if refusal.reason == "Forbidden":
                return None
            raise

    def read(self, kind: GroupVersionKind, namespace: str, name: str) -> Json | None:
        """Return an object, or None when it or its kind is gone."""
        try:
            return self._server.get(kind, namespace, name)
        except NotServedError:
            return None
        except RefusedError as refusal:
            if refusal.reason == "NotFound":
                return None
            raise

    def delete(
        self, kind: GroupVersionKind, inputs: Json, *, namespace: str, name: str, seconds: float
    ) -> None:
        """Delete an object and wait until it has disappeared, finalizers included.

        Raises:
            RefusedError: It was not deleted.
            NotDoneError: Its deletion has begun but does not end.
        """
        policy = annotation(inputs, PROPAGATION).capitalize()
        propagation = policy if policy in {"Orphan", "Background"} else "Foreground"
        try:
            self._server.delete(kind, namespace, name, propagation=propagation)
            wait_until_gone(
                self._server,
                kind,
                namespace,
                name,
                seconds=_seconds(inputs, seconds),
                cancelled=self._cancelled,
            )
        except NotServedError:
            return
        except RefusedError as refusal:
            if refusal.reason != "NotFound":
                raise

    def _take_over(self, kind: GroupVersionKind, namespace: str, name: str, manager: str) -> Json:
        for attempt in range(TAKEOVER_ATTEMPTS):
            live = self._server.get(kind, namespace, name)
            patch = plan_takeover(live, manager)
            if not patch:
                return live
            try:
                return self._server.patch(kind, namespace, name, patch)
            except RefusedError as refusal:
                if refusal.reason != "Conflict" or attempt == TAKEOVER_ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _is_forced(self, inputs: Json, live: Json) -> bool:
        unmanaged = not live["metadata"].get("managedFields")
        return self._force or unmanaged or annotation(inputs, FORCE).lower() == "true"

    def _wait(self, kind: GroupVersionKind, inputs: Json, live: Json, seconds: float) -> Json:
        if is_awaited(inputs):
            limit = _seconds(inputs, seconds)
            return wait_until_ready(self._server, kind, live, seconds=limit, cancelled=self._cancelled)
        return live

    @staticmethod
    def _body(kind: GroupVersionKind, inputs: Json, namespace: str, name: str) -> Json:
        identity = {"name": name} | ({"namespace": namespace} if namespace else {})
        metadata = {**(inputs.get("metadata") or {}), **identity}
        return {**inputs, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def is_awaited(inputs: Json) -> bool:
    """Tell whether the program wants to wait for the object."""
    return annotation(inputs, SKIP_AWAIT).lower() != "true"


def _seconds(inputs: Json, option: float) -> float:
    """Return how long to wait: the resource option, else the annotation, else the default."""
    text = annotation(inputs, TIMEOUT_SECONDS)
    return option or (float(text) if text.isdecimal() else DEFAULT_SECONDS)
