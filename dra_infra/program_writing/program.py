"""Writes a program from objects: names, order, and what refers to what."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple

from dra_infra.advice.made_up_names import WrittenNames
from dra_infra.kubernetes.api import mapping
from dra_infra.kubernetes.api.names import LABEL_LENGTH
from dra_infra.migration.outcomes import Remark
from dra_infra.program_writing.claims import Classes, ComponentCall, read_claim, read_class, read_taint_rule
from dra_infra.program_writing.kubernetes_classes import (
    ANY_RESOURCE,
    CUSTOM_RESOURCE,
    Stems,
    TypedData,
    argument_of,
    choose_names,
    fields_of,
    function_for,
    stem_of,
    without_name,
)
from dra_infra.program_writing.pods import ClaimOfProgram, attach_claims, is_pod_spec, uses_claims
from dra_infra.program_writing.python_text import Call, Name, depth_of, plain, write
from dra_infra.program_writing.said import CannotSayError

_CLAIM_FIELDS: Final = {
    "ResourceClaim": "resourceClaimName",
    "ResourceClaimTemplate": "resourceClaimTemplateName",
}
"""The field of a pod's entry that names an object of a kind."""

_CHANGED: Final = "# In the cluster: `pulumi up` imports it as it is there, and then changes it to this.\n"
_HEAD: Final = '"""Objects of a cluster, as `dra-infra migrate` wrote them."""\n'
_GROUP: Final = "resource.k8s.io/"
_OPTIONS: Final = "pulumi.ResourceOptions"


class WrittenProgram(NamedTuple):
    """A program and what is to be said of it.

    Args:
        text: Source of `__main__.py`.
        remarks: For each object, in their order: why it, or a part of it, is no component.
        components: Number of objects that components make.
    """

    text: str
    remarks: Sequence[tuple[Remark, ...]]
    components: int


@dataclass(slots=True, kw_only=True)
class _Statement:
    """The statements of the program for one object.

    Args:
        variable: What it is assigned to, where anything refers to it.
        call: The call that makes it.
        before: Assignments that come in front of it.
        uses: Positions of the objects that have to stand before it.
        is_component: Whether a component makes the object.
        remarks: Why it, or a part of it, is no component.
    """

    variable: str
    call: Call
    before: list[tuple[str, Any]] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    is_component: bool = False
    remarks: tuple[Remark, ...] = ()


def write_program(
    objects: Sequence[Mapping[str, Any]],
    *,
    imported: Collection[int] = (),
    changed: Collection[int] = (),
    kubernetes: str | None = None,
    names: Mapping[int, str] | None = None,
) -> WrittenProgram:
    """Writes a program that makes *objects*: the same one each time.

    Classes, claims and claim templates are components where these make the very same object; every other object is written
    as it is. What is used stands before what uses it; beyond that the order is that of the objects.

    Args:
        objects: Manifests as plain data, each with apiVersion and kind.
        imported: Positions of objects that are taken over, for they are in a cluster.
        changed: Those of them that are not as they are here.
        kubernetes: The minor that it is for.
        names: Names of resources that are known, by position.
    """
    made_up = {index: stem for index, each in enumerate(objects) if (stem := stem_of(each))}
    named = {**made_up, **(names or {})}
    # Names as they could be, so that components take them.
    written = WrittenNames(objects).manifests
    first = _Writer(written, imported, made_up, named, {}, kubernetes)
    first.write()
    # What each resource is called depends on what the others are called, and never on their order.
    statements = _Writer(written, imported, made_up, named, choose_names(first.stems), kubernetes).write()
    used = {index for each in statements for index in each.uses}
    body = "\n\n".join(_texts(statements, used, changed))
    calls = [statement.call.function for statement in statements]
    theirs = {
        "pulumi": any(
            each == ANY_RESOURCE or "opts" in statement.call.keywords
            for each, statement in zip(calls, statements, strict=True)
        ),
        "pulumi_kubernetes as k8s": any(each.startswith("k8s.") for each in calls),
    }
    blocks = [
        [
            *(["import json"] if "json.loads(" in body else []),
            *(["from importlib.metadata import version"] if ANY_RESOURCE in calls else []),
        ],
        [f"import {name}" for name, is_used in theirs.items() if is_used],
        ["import dra_infra as dra"] if any(each.startswith("dra.") for each in calls) else [],
    ]
    imports = ["".join(f"{line}\n" for line in block) for block in blocks if block]
    parts = [_HEAD, *imports, body] if body else [_HEAD.rstrip()]
    return WrittenProgram(
        text="\n".join([*parts, ""]),
        remarks=[each.remarks for each in statements],
        components=sum(each.is_component for each in statements),
    )


def _texts(statements: Sequence[_Statement], used: set[int], changed: Collection[int]) -> Iterator[str]:
    for index in _ordered(statements):
        yield (_CHANGED if index in changed else "") + "\n".join(
            f"{name} = {write(code, used=len(name) + 3)}" if name else write(code)
            for name, code in _assignments(statements[index], is_used=index in used)
        )


def _assignments(statement: _Statement, *, is_used: bool) -> Iterator[tuple[str, Any]]:
    yield from statement.before
    yield (statement.variable if is_used else ""), statement.call


def _ordered(statements: Sequence[_Statement]) -> list[int]:
    """Positions in the order of the program. Nothing uses what uses it; texts that only look so give a program that does not run."""
    order: dict[int, None] = {}
    seen: set[int] = set()

    def put(index: int) -> None:
        if index not in seen:
            seen.add(index)
            for each in statements[index].uses:
                put(each)
            order.setdefault(index)

    for index in range(len(statements)):
        put(index)
    return list(order)


class _Writer:
    """The names that are taken so far, and what refers to what."""

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]],
        imported: Collection[int],
        made_up: Mapping[int, str],
        named: Mapping[int, str],
        names: Mapping[int, str],
        kubernetes: str | None,
    ) -> None:
        self._objects = objects
        self._imported = imported
        self._made_up = made_up
        self._known = named
        self._names = names
        self._kubernetes = kubernetes
        self.stems: dict[int, Stems] = {}
        self._variables = {
            "dra",
            "k8s",
            "json",
            "pulumi",
            "version",
            *keyword.kwlist,
            *keyword.softkwlist,
            *dir(builtins),
        }
        self._statements: dict[int, _Statement] = {}
        self._namespaces: dict[str, int] = {}
        self._classes: dict[str, int] = {}
        self._known_classes: dict[str, Any] = {}
        self._claims: dict[str, dict[tuple[str, str], ClaimOfProgram]] = {}
        self._claim_indexes: dict[str, int] = {}
        self._variables_of = {index: self._variable(stem) for index, stem in made_up.items()}
        self._named: dict[str, list[int]] = {}
        for index in made_up:
            self._named.setdefault(str(_metadata(objects[index]).get("name")), []).append(index)

    def write(self) -> list[_Statement]:
        """A statement for each object."""
        kinds: dict[str, list[int]] = {}
        for index, each in enumerate(self._objects):
            version, kind = str(each.get("apiVersion")), str(each.get("kind"))
            kinds.setdefault(f"{_group(version)}/{kind}", []).append(index)
        for index in kinds.get("core/Namespace", ()):
            name = str(_metadata(self._objects[index]).get("name"))
            self._write_object(index, variable=self._variables_of.get(index) or self._variable(name))
            if self._statements[index].call.function != ANY_RESOURCE:
                self._namespaces.setdefault(name, index)
        for index in kinds.get("dra/DeviceClass", ()):
            self._write_class(index)
        for index in kinds.get("dra/DeviceTaintRule", ()):
            self._write_taint_rule(index)
        for kind in _CLAIM_FIELDS:
            for index in kinds.get(f"dra/{kind}", ()):
                self._write_claim(index)
        for index in range(len(self._objects)):
            if index not in self._statements:
                self._write_object(index)
        return [self._statements[index] for index in range(len(self._objects))]

    def _write_class(self, index: int) -> None:
        try:
            self._check_name(index)
            found = read_class(self._objects[index])
        except CannotSayError as error:
            self._write_object(index, _kept(str(error)))
            return
        statement = self._write_component(index, found)
        name = str(_metadata(self._objects[index])["name"])
        if name not in self._classes:
            self._classes[name] = index
            self._known_classes[name] = (statement.variable, found.named_class)

    def _write_taint_rule(self, index: int) -> None:
        try:
            self._check_name(index)
            self._write_component(index, read_taint_rule(self._objects[index], self._kubernetes))
        except CannotSayError as error:
            self._write_object(index, _kept(str(error)))

    def _write_claim(self, index: int) -> None:
        manifest = self._objects[index]
        classes: Classes = self._known_classes
        try:
            self._check_name(index)
            found = read_claim(manifest, classes)
        except CannotSayError as error:
            self._write_object(index, _kept(str(error)))
            return
        statement = self._write_component(index, found)
        metadata = _metadata(manifest)
        key = (_CLAIM_FIELDS[manifest["kind"]], str(metadata["name"]))
        here = self._claims.setdefault(str(metadata.get("namespace", "")), {})
        if key not in here:
            here[key] = ClaimOfProgram(statement.variable, str(statement.call.arguments[0]), found.requests)
            self._claim_indexes[statement.variable] = index

    def _check_name(self, index: int) -> None:
        if index in self._made_up:
            raise CannotSayError("Pulumi makes its name up, and a component has one by its content")

    def _write_component(self, index: int, found: ComponentCall) -> _Statement:
        metadata = _metadata(self._objects[index])
        uses = [self._classes[each] for each in found.uses]
        name = self._name(index, f"dra.{found.component}", is_label=found.component != "GpuDeviceClass")
        keywords = dict(found.keywords)
        if "namespace" in metadata:
            keywords["namespace"] = self._namespace(metadata["namespace"], uses)
        if found.component != "GpuDeviceClass" or name != metadata["name"]:
            keywords["object_name"] = metadata["name"]
        keywords |= {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
        if options := self._import_of(index):
            keywords["opts"] = Call(_OPTIONS, keywords=options)
        call = Call(f"dra.{found.component}", [name], keywords)
        statement = _Statement(variable=self._variable(name), call=call, uses=uses, is_component=True)
        self._statements[index] = statement
        return statement

    def _import_of(self, index: int) -> dict[str, Any]:
        """The option that takes an object over, by its ID; none where it is not in the cluster."""
        metadata = _metadata(self._objects[index])
        known = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
        return {"import_": known} if index in self._imported else {}

    def _write_object(self, index: int, remarks: tuple[Remark, ...] = (), *, variable: str = "") -> None:
        """The object as it is, with its claims attached."""
        manifest = self._objects[index]
        version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
        fields = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
        if index in self._made_up:
            fields["metadata"] = without_name(fields["metadata"])
        function, arguments = function_for(version, kind, fields)
        name = self._name(index, f"{version}:{kind}")
        variable = variable or self._variables_of.get(index, "")
        statement = _Statement(variable=variable, call=Call(function), remarks=remarks)
        self._statements[index] = statement
        if depth_of(fields) == depth_of(plain(fields)):
            attaching = _Attaching(self, name, str(_metadata(manifest).get("namespace", "")), statement)
            fields = {
                key: attaching.code_of(value, arguments.get(argument_of(key)))
                for key, value in fields.items()
            }
            if "namespace" in _metadata(manifest):
                namespace = self._namespace(manifest["metadata"]["namespace"], statement.uses)
                fields["metadata"] = {**fields["metadata"], "namespace": namespace}
        else:
            fields = {key: plain(value) for key, value in fields.items()}
        if function == ANY_RESOURCE:
            token = f"kubernetes:{'' if '/' in version else 'core/'}{version}:{kind}"
            # Of the version of the typed classes, or the engine would start a second provider.
            options = {"version": Name('version("pulumi-kubernetes")'), **self._import_of(index)}
            opts = Call(_OPTIONS, keywords=options)
            held = {"apiVersion": version, "kind": kind, **fields}
            statement.call = Call(function, [token, name, held], {"opts": opts})
            return
        keywords = {argument_of(key): value for key, value in fields.items()}
        if function == CUSTOM_RESOURCE:
            keywords = {"api_version": version, "kind": kind, **keywords}
        if options := self._import_of(index):
            keywords["opts"] = Call(_OPTIONS, keywords=options)
        statement.call = Call(function, [name], keywords)

    def _namespace(self, name: Any, uses: list[int]) -> Any:
        """The namespace, of the program's own Namespace where it has it, so that the engine makes that first."""
        index = self._namespaces.get(name) if isinstance(name, str) else None
        if index is None:
            return name
        uses.append(index)
        return Name(f'{self._statements[index].variable}.metadata["name"]')

    def refer(self, text: str, uses: list[int]) -> Any:
        """The text, or the name of the one object that it is the name of, where Pulumi makes that up."""
        found = self._named.get(text, ())
        if len(found) != 1:
            return text
        uses.append(found[0])
        return Name(f'{self._variables_of[found[0]]}.metadata["name"]')

    def claims_of(self, namespace: str) -> Mapping[tuple[str, str], ClaimOfProgram]:
        """The claims of the program that pods of a namespace can use."""
        return self._claims.get(namespace, {})

    def index_of(self, variable: str) -> int:
        """The position of the claim that a variable holds."""
        return self._claim_indexes[variable]

    def _name(self, index: int, function: str, *, is_label: bool = False) -> str:
        """The name of a resource, of what `choose_names` chooses from: the object's, with its namespace, and with a digest of both."""
        metadata = _metadata(self._objects[index])
        name = self._known.get(index) or str(metadata.get("name") or self._objects[index]["kind"])
        namespace = str(metadata.get("namespace", "object"))
        namespace = self._made_up.get(self._namespaces.get(namespace, -1), namespace)
        length, others = (LABEL_LENGTH - 5, "[^a-z0-9-]") if is_label else (253, "[^A-Za-z0-9_.-]")
        whole = f"{namespace}/{metadata.get('name') or name}"
        digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        first, second, third = (
            re.sub(others, "-", text)[:room].strip("-" if is_label else "-.") or "object"
            for text, room in ((name, length), (f"{namespace}-{name}", length), (name, length - 9))
        )
        # Of another program it may have any letters.
        first = name if index in self._known and not is_label else first
        self.stems[index] = function, (first, second, f"{third}-{digest}"), first == name
        return self._names.get(index, first)

    def _variable(self, name: str) -> str:
        stem = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_") or "object"
        stem = f"_{stem}" if stem[0].isdigit() else stem
        number = 1
        found = stem
        while found in self._variables:
            number += 1
            found = f"{stem}_{number}"
        self._variables.add(found)
        return found

    def new_variable(self, name: str) -> str:
        """A variable that nothing else is assigned to."""
        return self._variable(name)


class _Attaching:
    """Attaches the claims of the program to the pod specs of one object."""

    def __init__(self, writer: _Writer, name: str, namespace: str, statement: _Statement) -> None:
        self._writer = writer
        self._name = name
        self._claims = writer.claims_of(namespace)
        self._statement = statement

    def code_of(self, value: Any, data: TypedData | None) -> Any:
        """The value, with its pod specs as `attach` gives them, and keys as the class of the vendor spells them.

        Args:
            value: Plain data.
            data: Its type; None where nothing is known of its fields.
        """
        if isinstance(value, list):
            return [self.code_of(each, data) for each in value]
        if not isinstance(value, Mapping):
            return self._writer.refer(value, self._statement.uses) if isinstance(value, str) else value
        if not is_pod_spec(value) or not uses_claims(value, self._claims):
            return self._spelt(value, data)
        found = attach_claims(value, self._claims)
        if found is None:
            self._statement.remarks += _kept("attach would give its pods claims in another order")
            return self._spelt(value, data)
        found = found._replace(pod=self._spelt(found.pod, data))
        self._statement.uses += [self._writer.index_of(variable) for variable, _ in found.calls]
        if len(found.calls) == 1:
            return found.inline()
        name = self._writer.new_variable(f"{self._name}_pod")
        (_, pod), *calls = found.statements(name)
        # A type checker takes a dict in a variable for what its annotation says.
        typed = (
            f"{name}: k8s.core.v1.{data.name}"
            if data is not None and data.name == "PodSpecArgsDict"
            else name
        )
        self._statement.before += [(typed, pod), *calls]
        return Name(name)

    def _spelt(self, value: Mapping[str, Any], data: TypedData | None) -> dict[str, Any]:
        if data is None or data.is_map:
            inner = data._replace(is_map=False) if data is not None and data.name else None
            return {key: self.code_of(each, inner) for key, each in value.items()}
        fields = fields_of(data)
        result = {}
        for key, each in value.items():
            spelling, kind = fields.get(key, (key, None))
            result[spelling] = self.code_of(each, kind)
        return result


def _group(version: str) -> str:
    """`core`, `dra` or nothing, for what comes first in a program."""
    if version == "v1":
        return "core"
    return "dra" if version.startswith(_GROUP) else ""


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(manifest.get("metadata"))


def _kept(why: str) -> tuple[Remark, ...]:
    message = f"it is written as the object that it is: {why}"
    return (Remark(path="", outcome="kept", code="kept-as-object", message=message),)
