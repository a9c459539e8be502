"""The answer to `Diff`: what changes, what needs a new object, and which of the two goes first."""

from __future__ import annotations

import base64
from typing import Final

from pulumi.runtime.proto import provider_pb2

from tools.kubernetes_provider.changes import Change, Effect, find_changes
from tools.kubernetes_provider.options import Options
from tools.kubernetes_provider.replacement import replacing_fields
from tools.kubernetes_provider.resource_types import AUTONAMED, GroupVersionKind, annotation, metadata
from tools.kubernetes_provider.values import UNKNOWN, Object, reveal

DIFF: Final = provider_pb2.PropertyDiff
KINDS: Final = {
    (Effect.ADD, False): DIFF.ADD,
    (Effect.ADD, True): DIFF.ADD_REPLACE,
    (Effect.DELETE, False): DIFF.DELETE,
    (Effect.DELETE, True): DIFF.DELETE_REPLACE,
    (Effect.UPDATE, False): DIFF.UPDATE,
    (Effect.UPDATE, True): DIFF.UPDATE_REPLACE,
}
DEFAULT_NAMESPACE: Final = "default"


def compare(
    kind: GroupVersionKind,
    *,
    old_inputs: Object,
    old_object: Object,
    new_inputs: Object,
    namespaced: bool,
    options: Options,
) -> provider_pb2.DiffResponse:
    """Compare the inputs of two deployments.

    Args:
        kind: Of the object.
        old_inputs: Of the last deployment.
        old_object: The object that it made.
        new_inputs: Of this one; values may be unknown.
        namespaced: Whether objects of this kind have a namespace, which then defaults to `default`.
        options: Of the provider.
    """
    old, new = (_canonical(reveal(inputs), namespaced=namespaced) for inputs in (old_inputs, new_inputs))
    replacing = replacing_fields(
        kind,
        immutable=new.get("immutable") is True,
        config_maps_mutable=options.config_maps_mutable,
        secrets_mutable=options.secrets_mutable,
    )
    changes = find_changes(old, new, replacing)
    some = provider_pb2.DiffResponse.DIFF_SOME if changes else provider_pb2.DiffResponse.DIFF_NONE
    replaces = [change.path for change in changes if change.replaces]
    existing = _canonical(reveal(old_object), namespaced=namespaced)
    return provider_pb2.DiffResponse(
        changes=some,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and _takes_the_same_place(existing, new),
        detailedDiff={change.path: describe(change) for change in changes},
        hasDetailedDiff=True,
    )


def describe(change: Change) -> provider_pb2.PropertyDiff:
    """Return a change as the engine reads it."""
    # As with the vendor's provider: only what is gone is compared with the old inputs, all else with the
    # object in the state.
    return DIFF(kind=KINDS[change.effect, change.replaces], inputDiff=change.effect is Effect.DELETE)


def _takes_the_same_place(existing: Object, new: Object) -> bool:
    """Tell whether the program insists on the name that the old object has."""
    before, after = metadata(existing), metadata(new)
    return (
        after.get("name") not in (None, UNKNOWN)
        and annotation(new, AUTONAMED) != "true"
        and after.get("name") == before.get("name")
        and after.get("namespace") == before.get("namespace")
    )


def _canonical(properties: Object, *, namespaced: bool) -> Object:
    """Return *properties* with the namespace and the data of a Secret that the server would see."""
    properties = _with_encoded_data(properties)
    found = properties.get("metadata")
    if not isinstance(found, dict):
        return properties
    others = {name: value for name, value in found.items() if name != "namespace"}
    namespace = {"namespace": found.get("namespace") or DEFAULT_NAMESPACE} if namespaced else {}
    return {**properties, "metadata": others | namespace}


def _with_encoded_data(properties: Object) -> Object:
    """Return a Secret with `stringData` in its `data`, as the server keeps it, so that a change is told there."""
    texts = properties.get("stringData")
    if (properties.get("apiVersion"), properties.get("kind")) != ("v1", "Secret") or not isinstance(
        texts, dict
    ):
        return properties
    encoded = {
        key: base64.b64encode(value.encode()).decode() if isinstance(value, str) else value
        for key, value in texts.items()
    }
    others = {name: value for name, value in properties.items() if name != "stringData"}
    return {**others, "data": {**(properties.get("data") or {}), **encoded}}
