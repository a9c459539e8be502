"""Kinds of other projects whose objects make pods, and those of a user's own file.

Source: data/workload_kinds.yaml, with the Go types of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from dra_infra.catalog.vocabulary import read_data
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.errors import Problem, ProblemsError
from dra_infra.kubernetes.api import (
    BUILT_IN_KINDS,
    SUSPENDED,
    Number,
    PodPart,
    PodTemplate,
    Steps,
    WorkloadKind,
    WorkloadKinds,
    read_steps,
)
from dra_infra.output.wording import nearest

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""The label of a workload that names the queue of Kueue in which it waits."""

_MAX_BYTES: Final = 2**20
_HINT: Final = (
    "write kinds: with kind, group and parts, each part with template: spec.workers.*.template and pods: "
    "[spec.workers.*.replicas]"
)

_Path = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.([A-Za-z0-9_-]+|\*))*$", max_length=300)]


class _Entry(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True, defer_build=True
    )


class _NumberEntry(_Entry):
    field: _Path
    default: Annotated[int, Field(ge=0)] = 1
    less: Annotated[int, Field(ge=0)] = 0
    at_least: _Path | None = None
    at_most: _Path | None = None

    def read(self) -> Number:
        return Number(
            at=read_steps(self.field),
            default=self.default,
            less=self.less,
            at_least=read_steps(self.at_least or ""),
            at_most=read_steps(self.at_most or ""),
        )


def _spelled_out(value: Any) -> Any:
    return {"field": value} if isinstance(value, str) else value


_Numbers = Annotated[list[Annotated[_NumberEntry, BeforeValidator(_spelled_out)]], Field(max_length=8)]


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Paths = Annotated[list[_Path], BeforeValidator(_one_or_more), Field(max_length=8)]


class _ComposedEntry(_Entry):
    containers: Annotated[_Paths, Field(min_length=1)]
    init_containers: _Paths = []
    resource_claims: _Paths = []
    resources: _Paths = []
    node_selector: _Paths = []
    affinity: _Paths = []
    tolerations: _Paths = []
    runtime_class_name: _Paths = []
    priority_class_name: _Paths = []
    scheduler_name: _Paths = []

    def read(self) -> tuple[tuple[str, tuple[Steps, ...]], ...]:
        paths = self.model_dump(by_alias=True).items()
        return tuple((name, tuple(map(read_steps, each))) for name, each in paths if each)


class _PartEntry(_Entry):
    template: _Path | None = None
    spec: _Path | None = None
    compose: _ComposedEntry | None = None
    otherwise: _Path | None = None
    name: Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9_.*-]*)$", max_length=300)] = ""
    pods: _Numbers = []
    least: _Numbers = []
    most: _Numbers = []
    autoscaled_by: _Path | None = None
    labels: Annotated[dict[str, _Path], Field(max_length=16)] = {}

    def read(self) -> PodPart:
        return PodPart(
            path=read_steps(self.template or self.spec or ""),
            otherwise=read_steps(self.otherwise or ""),
            is_spec=self.template is None,
            composed=self.compose.read() if self.compose else (),
            name=read_steps(self.name),
            numbers=tuple(each.read() for each in self.pods),
            least=tuple(each.read() for each in self.least),
            most=tuple(each.read() for each in self.most),
            autoscaled_by=read_steps(self.autoscaled_by or ""),
            labels=tuple((name, read_steps(path)) for name, path in self.labels.items()),
        )


class _KindEntry(_Entry):
    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)]
    group: Annotated[str, Field(pattern=r"^[a-z0-9.-]+$", max_length=253)]
    source: str = ""
    parts: Annotated[list[_PartEntry], Field(max_length=32)] = []
    gang: bool = False
    gang_by: _Path | None = None
    gang_of: _Path | None = None
    suspended_by: Annotated[list[_Path], Field(max_length=8)] = []
    fields: Annotated[dict[_Path, str], Field(max_length=16)] = {}
    annotations: Annotated[dict[str, str], Field(max_length=16)] = {}
    on_change: Annotated[str, Field(max_length=300)] = ""
    keeps_pods: Annotated[str, Field(max_length=300)] = ""
    anew: bool = False
    changed_by: Annotated[dict[_Path, Any], Field(max_length=16)] = {}

    def read(self) -> WorkloadKind:
        return WorkloadKind(
            group=self.group,
            kind=self.kind,
            parts=tuple(each.read() for each in self.parts),
            gang=read_steps(self.gang_by or "") if self.gang or self.gang_by else None,
            gang_of=read_steps(self.gang_of or ""),
            on_change=self.on_change,
            keeps_pods=self.keeps_pods,
            anew=self.anew,
            changed_by=tuple((read_steps(path), otherwise) for path, otherwise in self.changed_by.items()),
            unmodelled=(
                *((read_steps(path), SUSPENDED) for path in self.suspended_by),
                *((read_steps(path), why) for path, why in self.fields.items()),
                *((("metadata", "annotations", name), why) for name, why in self.annotations.items()),
            ),
        )


class _Entries(_Entry):
    kinds: Annotated[list[_KindEntry], Field(max_length=256)]


_KEYS: Final = sorted(
    {
        field.alias or name
        for entry in (_Entries, _KindEntry, _PartEntry, _ComposedEntry, _NumberEntry)
        for name, field in entry.model_fields.items()
    }
)
"""Every key of a file with kinds."""


@cache
def workload_kinds() -> WorkloadKinds:
    """The kinds of Kubernetes, and those of other projects that the catalogue knows."""
    return BUILT_IN_KINDS.with_kinds(
        each.read() for each in _Entries.model_validate(read_data("workload_kinds.yaml")).kinds
    )


def read_workload_kinds(document: Mapping[str, Any], file: str) -> WorkloadKinds:
    """Reads a user's own kinds, which come before those that are known.

    Args:
        document: The YAML document, with a list `kinds` of the form of data/workload_kinds.yaml.
        file: Path of the file, for problems.

    Raises:
        ProblemsError: `workload-kind-malformed`, with every fault.
    """
    try:
        entries = _Entries.model_validate(dict(document))
    except ValidationError as error:
        raise ProblemsError(list(_problems(error, file))) from None
    return workload_kinds().with_kinds(each.read() for each in entries.kinds)


def load_workload_kinds(file: Path) -> WorkloadKinds:
    """Reads a file of a user's own kinds; at most 1 MiB.

    Raises:
        ProblemsError: `workload-kind-malformed` for a file that cannot be read too, and what YAML is refused for.
    """
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise _unreadable(file, f"is larger than {_MAX_BYTES >> 20} MiB")
        documents = [each.data for each in read_documents(text.decode())]
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(
            file, f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from None
    except RefusedYamlError as error:
        raise _unreadable(file, f"cannot be read: {error.message}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise _unreadable(file, "is not one mapping with a list of kinds")
    return read_workload_kinds(documents[0], file.name)


def find_pod_templates(manifest: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """Yield the pod templates of an object, by the kinds that the catalogue knows."""
    return workload_kinds().find_pod_templates(manifest)


_MESSAGES: Final = {
    "bool_type": "this is not true or false",
    "dict_type": "this is not a mapping, which has a name before each value",
    "greater_than_equal": "this is less than 0",
    "int_type": "this is not a whole number",
    "list_type": "this is not a list, whose items begin with -",
    "missing": "this is missing",
    "model_type": "this is not a mapping, which has a name before each value",
    "string_pattern_mismatch": "this is no path of fields, such as spec.workers.*.template",
    "string_too_long": "this is too long",
    "string_type": "this is not a text",
    "too_long": "there are too many of these",
    "too_short": "there are none of these",
}
"""Words for each fault, by pydantic's type of it."""

_FORMS: Final = {
    "kind": "this is no kind, such as TrainingRun",
    "group": "this is no API group, such as ml.example.com",
}
"""Words for a text of another form, by the key that it stands under; paths of fields stand under the others."""


def _unreadable(file: Path, why: str) -> ProblemsError:
    return ProblemsError.of(path=str(file), code="workload-kind-malformed", message=why, hint=_HINT)


def _problems(error: ValidationError, file: str) -> Iterator[Problem]:
    for each in error.errors(include_url=False, include_input=False):
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"])
        message = _MESSAGES.get(each["type"], each["msg"])
        hint = _HINT
        if each["type"] == "string_pattern_mismatch":
            message = _FORMS.get(str(each["loc"][-1]), message)
        if each["type"] == "extra_forbidden":
            key = str(each["loc"][-1])[:60]
            near = nearest(key, _KEYS)
            message = f"there is no {key} here"
            hint = f"did you mean {near}?" if near else _HINT
        yield Problem(path=f"{file}{path}", code="workload-kind-malformed", message=message, hint=hint)
