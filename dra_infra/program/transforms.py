"""Calls transforms of resources in the same process: those that the engine calls for a resource, in its order.

The SDK has a server for the engine to call its transforms. Here its functions are called without one: a program that is
reviewed may make no socket. What they are given and give back is what goes over the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf import struct_pb2
from pulumi.runtime._callbacks import _CallbackServicer
from pulumi.runtime.proto import alias_pb2, resource_pb2

from dra_infra.program.surroundings import (
    OUTPUT_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE_KEY,
    UNKNOWN_VALUE,
)


class _Callbacks(_CallbackServicer):
    """The SDK's callbacks without their server."""

    def __init__(self, monitor: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._callbacks = {}
        self._transforms = {}
        self._state_migrations = {}
        self._monitor = monitor
        self._loop = loop
        self._target = "in-process"

    async def call(self, token: str, request: bytes) -> Any:
        return await self._callbacks[token](request)


class Transforms:
    """The transforms of a run."""

    def __init__(self) -> None:
        self._of_stack: list[str] = []
        self._of_resources: dict[str, list[str]] = {}
        self._callbacks: _Callbacks | None = None

    def start(self, monitor: Any, loop: asyncio.AbstractEventLoop) -> Any:
        """What the SDK registers transforms with, in place of its server."""
        self._callbacks = _Callbacks(monitor, loop)
        return self._callbacks

    def add_to_stack(self, callback: Any) -> None:
        """Call this one for every resource that is registered from now on."""
        self._of_stack.append(callback.token)

    def of_resource(self, urn: str, parents: Iterable[str], own: Iterable[Any]) -> list[str]:
        """The transforms of a resource: its own, those of its parents from the nearest on, those of the stack."""
        mine = [callback.token for callback in own]
        if mine:
            self._of_resources[urn] = mine
        of_parents = (
            token
            for parent in (parents if self._of_resources else ())
            for token in self._of_resources.get(parent, ())
        )
        return [*mine, *of_parents, *self._of_stack]

    async def apply(self, chosen: Sequence[str], request: Any) -> None:
        """Call the transforms one after the other, and put what they make of the resource into its registration."""
        assert self._callbacks is not None  # noqa: S101  (a token comes from them)
        properties = request.object
        options = _options_of(request)
        for token in chosen:
            asked = resource_pb2.TransformRequest(
                type=request.type,
                name=request.name,
                custom=request.custom,
                parent=request.parent,
                properties=_as_outputs(properties),
                options=options,
            )
            answer = await self._callbacks.call(token, asked.SerializeToString())
            properties = answer.properties if answer.HasField("properties") else properties
            options = answer.options if answer.HasField("options") else options
        request.object.CopyFrom(properties)
        for field, name in _LISTS.items():
            request.ClearField(field)
            getattr(request, field).extend(getattr(options, name))
        if options.HasField("protect"):
            request.protect = options.protect
        if options.HasField("retain_on_delete"):
            request.retainOnDelete = options.retain_on_delete
        request.ClearField("aliasURNs")
        request.deleteBeforeReplaceDefined = options.HasField("delete_before_replace")
        request.deleteBeforeReplace = options.delete_before_replace
        request.deletedWith = options.deleted_with
        request.customTimeouts.CopyFrom(options.custom_timeouts)


_LISTS: Final = {
    "aliases": "aliases",
    "dependencies": "depends_on",
    "ignoreChanges": "ignore_changes",
    "replaceOnChanges": "replace_on_changes",
}
_OPTIONAL: Final = {
    "protect": "protect",
    "retainOnDelete": "retain_on_delete",
    "replacement_trigger": "replacement_trigger",
    "customTimeouts": "custom_timeouts",
    "hooks": "hooks",
}


def _options_of(request: Any) -> resource_pb2.TransformResourceOptions:
    given = {name: getattr(request, field) for field, name in _OPTIONAL.items() if request.HasField(field)}
    if request.deleteBeforeReplaceDefined or request.deleteBeforeReplace:
        given["delete_before_replace"] = request.deleteBeforeReplace
    return resource_pb2.TransformResourceOptions(
        depends_on=request.dependencies,
        ignore_changes=request.ignoreChanges,
        replace_on_changes=request.replaceOnChanges,
        version=request.version,
        aliases=[*(alias_pb2.Alias(urn=urn) for urn in request.aliasURNs), *request.aliases],
        provider=request.provider,
        providers=request.providers,
        hide_diff=request.hideDiffs,
        plugin_download_url=request.pluginDownloadURL,
        deleted_with=request.deletedWith,
        replace_with=request.replace_with,
        additional_secret_outputs=request.additionalSecretOutputs,
        plugin_checksums=request.pluginChecksums,
        **{"import": request.importId, **given},
    )


def _as_outputs(properties: struct_pb2.Struct) -> struct_pb2.Struct:
    """A copy with unknown and secret values as the engine hands them to transforms: as Outputs."""
    made = struct_pb2.Struct()
    made.CopyFrom(properties)
    for value in made.fields.values():
        _upgrade(value)
    return made


def _upgrade(value: struct_pb2.Value) -> None:
    kind = value.WhichOneof("kind")
    if kind == "string_value" and value.string_value == UNKNOWN_VALUE:
        value.struct_value.fields[SIGNATURE_KEY].string_value = OUTPUT_SIGNATURE
    elif kind == "list_value":
        for item in value.list_value.values:
            _upgrade(item)
    elif kind == "struct_value":
        fields = value.struct_value.fields
        for item in fields.values():
            _upgrade(item)
        if SIGNATURE_KEY in fields and fields[SIGNATURE_KEY].string_value == SECRET_SIGNATURE:
            fields[SIGNATURE_KEY].string_value = OUTPUT_SIGNATURE
            fields["secret"].bool_value = True
