"""The monitor of a program in another language: registrations come from many threads, and components from their package."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from google.protobuf import struct_pb2
from pulumi.runtime.proto import resource_pb2

from dra_infra.components.report import user_file
from dra_infra.errors import Place, ProblemsError
from dra_infra.program.languages.component_package import (
    PREFIX,
    ComponentPackage,
    RefusedComponentError,
    schema,
)
from dra_infra.program.monitor import Monitor
from dra_infra.program.surroundings import UNKNOWN_VALUE
from dra_infra.program_objects import UNKNOWN_RESULT


@dataclass(kw_only=True)
class LanguageMonitor(Monitor):
    """As the monitor of a program in Python, for calls of a process.

    Args:
        places: Where resources stand, by their names, for a language that does not send it.
        functions: Arguments of functions and what is asked of their results, by their tokens, for the same.
        package: Makes the components.
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    functions: Mapping[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    package: ComponentPackage | None = None
    has_refused: bool = False
    """Whether a call failed with problems."""
    _constructed: dict[str, Place | None] = field(default_factory=dict)
    """Where components of the package stand, by their URNs."""
    _incomplete: set[str] = field(default_factory=set)
    """URNs of components that were refused, and of all that takes something of them."""
    _registering: threading.Lock = field(default_factory=threading.Lock)

    def refuse(self, error: ProblemsError) -> None:
        """Remember why a call of the program fails. Its language shows the same less exactly."""
        with self._lock:
            self.problems.extend(error.problems)
            self.has_refused = True

    def register(self, request: Any) -> Any:
        """Register a resource, or have a component of ours made."""
        if request.remote and request.type.startswith(PREFIX):
            return self._construct(request)
        return self.RegisterResource(request)

    def Invoke(self, request: Any) -> resource_pb2.ResourceInvokeResponse:  # noqa: N802
        """Call a function. What is not known of its result is noted here: the SDKs of other languages do not report it."""
        response = super().Invoke(request)
        if response.unknown:
            self.note_unknown_result(request.tok)
            if request.tok in self.functions:
                # The host of YAML fails where a property is missing, and takes no unknown value.
                _, asked = self.functions[request.tok]
                response.unknown = False
                getattr(response, "return").update(dict.fromkeys(asked, UNKNOWN_RESULT))
        return response

    def _register(self, urn: str, request: Any) -> resource_pb2.RegisterResourceResponse:
        with self._registering:
            answer = super()._register(urn, request)
            used = {each for names in request.propertyDependencies.values() for each in names.urns}
            if not self._incomplete.isdisjoint({request.parent, *request.dependencies, *used}):
                self._incomplete.add(urn)
            return answer

    def leave_out_incomplete(self) -> None:
        """Forget what takes something of a component that was refused: what is wrong with it follows from that."""
        for urn in self._incomplete:
            self.registrations.pop(urn, None)

    def _construct(self, request: Any) -> resource_pb2.RegisterResourceResponse:
        assert self.package is not None  # noqa: S101  (it is set before the program starts)
        urn = self._make_urn(request.parent, request.type, request.name)
        place = self._find_place(request)
        self._constructed[urn] = place
        self._check_provider(request.type, request.provider, request.name, place)
        try:
            made = self.package.construct(request)
        except RefusedComponentError as error:
            with self._lock:
                self.problems.extend(replace(each, place=place) for each in error.problems)
                self._incomplete.add(urn)
            # The program goes on, so that all problems of all components are shown.
            return resource_pb2.RegisterResourceResponse(urn=urn, object=_unknown_outputs(request.type))
        answer = resource_pb2.RegisterResourceResponse(urn=made.urn, object=made.state)
        for key, used in made.stateDependencies.items():
            answer.propertyDependencies[key].urns.extend(used.urns)
        return answer

    def _find_place(self, request: Any) -> Place | None:
        """Return where the program makes a resource: as its SDK sends it, as its file has it, or where its component stands."""
        for position in (*(frame.pc for frame in request.stackTrace.frames), request.sourcePosition):
            if place := self._read_position(position):
                return place
        name, type_, parent = (getattr(request, each, "") for each in ("name", "type", "parent"))
        urn = self._make_urn(parent, type_, name)
        if urn in self._constructed:
            return self._constructed[urn]
        holder = self.registrations.get(parent)
        if holder is not None and holder.place is not None:
            return holder.place
        return self.places.get(name)

    def _read_position(self, position: Any) -> Place | None:
        """Return the place that an SDK sends, if it is in the folder of the project."""
        parts = urlsplit(position.uri)
        if parts.scheme not in ("file", "project"):
            return None
        file = unquote(parts.path)
        shown = user_file(file, str(self.root)) if parts.scheme == "file" else file.lstrip("/")
        # The host of YAML is a program in Go, and sends its own places.
        is_own = shown and not shown.startswith("..") and "node_modules" not in shown
        return Place(file=shown, line=position.line) if is_own else None


def _unknown_outputs(type_: str) -> struct_pb2.Struct:
    """Return the outputs of a component that was not made, none of which is known."""
    declared = json.loads(schema())["resources"].get(type_, {}).get("properties", {})
    outputs = struct_pb2.Struct()
    outputs.update(dict.fromkeys(declared, UNKNOWN_VALUE))
    return outputs
