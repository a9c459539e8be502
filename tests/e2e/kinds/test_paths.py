"""Where the table of workload kinds says that pods are, held against the definitions of those kinds.

Both ways: what the table names is a pod spec in the schema, and every pod spec of a schema is in the table or named here
with the reason why not. And a real API server keeps a claim at each path, where the table finds it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dra_infra.advice.core_objects import POD_SPEC as POD_SPEC_TYPE
from dra_infra.catalog.workload_kinds import find_pod_templates, workload_kinds
from dra_infra.kubernetes.api import BUILT_IN_KINDS, SUPPORTED_MINORS, PodPart, WorkloadKind
from dra_infra.kubernetes.apiserver.core_schemas import read_core_schemas
from tests.e2e.kinds.schemas import (
    ANY,
    Path,
    Served,
    asking_for_pods_alone,
    descend,
    find_containers,
    find_pod_specs,
    object_with,
    served_versions,
)
from tests.support.charts import TESTDATA, find_testdata
from tests.support.components.objects import define
from tools.workload_crds import Manifest

pytestmark = pytest.mark.e2e

KINDS = {
    "/".join(key): kind for key, kind in workload_kinds().kinds.items() if key not in BUILT_IN_KINDS.kinds
}
"""The kinds of other projects by group and name."""

CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
POD_SPEC = {"containers": [{"name": "main", "image": "main"}], "resourceClaims": CLAIMS}
MACHINE_SPEC = {"domain": {"devices": {}}, "resourceClaims": CLAIMS}

UNDEFINED = {"kubeflow.org/Notebook": "its Go module is not served"}
"""Kinds of the table whose definition is not here."""

IN_TEST_DATA = {"apps.nvidia.com/NIMService", "argoproj.io/CronWorkflow", "argoproj.io/Workflow"}
"""Kinds of the table whose definition, or one with claims, is only in the test data."""

OPEN = {
    "sparkoperator.k8s.io/SparkApplication": "its pod templates have no schema: whatever is there is kept"
}
"""Kinds whose pods are where the schema says nothing."""

MACHINES = {
    "kubevirt.io/VirtualMachine",
    "kubevirt.io/VirtualMachineInstance",
    "kubevirt.io/VirtualMachineInstanceReplicaSet",
}
"""Kinds that hold the spec of a machine: claims, node selector and affinity of a pod, and no containers."""

OF_A_RUNTIME = "trainer.kubeflow.org/TrainJob"
"""The kind whose pods the table finds after the jobs of its runtime are put into it."""

OLDER_FIELDS = {f"{OF_A_RUNTIME} spec.podTemplateOverrides": "until 2.1; spec.runtimePatches since"}
"""Fields of the table that the newest definition has no more."""

MAKES_NO_PODS = "it is a template for others, and makes no pods"
MADE_BY_ANOTHER = "its controller is given these by the object that makes the pods"
KNOWS_NO_CLAIMS = "it knows no claims, and a server drops them"

NOT_IN_TABLE = {
    "argoproj.io/AnalysisRun": "Jobs that measure a Rollout, which it makes while one updates",
    "argoproj.io/AnalysisTemplate": MAKES_NO_PODS,
    "argoproj.io/ClusterAnalysisTemplate": MAKES_NO_PODS,
    "argoproj.io/Experiment": "pods beside a Rollout, for as long as it tries them",
    "disaggregatedset.x-k8s.io/DisaggregatedSet": "new in LWS 0.9: sets of LeaderWorkerSets, which it makes",
    "flow.volcano.sh/JobFlow": "changes to Jobs that it makes of JobTemplates",
    "serving.knative.dev/Configuration": KNOWS_NO_CLAIMS,
    "serving.knative.dev/Revision": KNOWS_NO_CLAIMS,
    "serving.knative.dev/Service": KNOWS_NO_CLAIMS,
}
"""Kinds whose schema has pod specs, and which the table leaves out."""

_PATCHED = (
    "spec.runtimePatches.*.trainingRuntimeSpec.template.spec.replicatedJobs.*.template.spec.template.spec"
)
NOT_A_POD_SPEC = {
    f"{OF_A_RUNTIME} {_PATCHED}": "changes to the pods of its runtime; named by the table",
    "serving.kserve.io/InferenceService spec.predictor.workerSpec": "how many is not known; named by the table",
}
"""Places with a list of containers in kinds of the table that it leaves out."""

ONLY_CONTAINERS = {
    "argoproj.io/WorkflowTaskSet": MADE_BY_ANOTHER,
    "serving.kserve.io/ClusterStorageContainer": MAKES_NO_PODS,
    "sparkoperator.k8s.io/ScheduledSparkApplication": "makes SparkApplications at their time",
}
"""Kinds that have containers and no pod spec, and are not in the table."""


def key_of(served: Served | WorkloadKind) -> str:
    return f"{served.group}/{served.kind}"


def parts() -> Iterator[tuple[WorkloadKind, PodPart, Path]]:
    """Each path of the table that leads to a pod spec."""
    for kind in KINDS.values():
        for part in kind.parts if key_of(kind) != OF_A_RUNTIME else ():
            if part.composed:
                continue
            for path in (part.path, part.otherwise):
                if path:
                    yield kind, part, path if part.is_spec else (*path, "spec")


PARTS = list(parts())
COMPOSED = {key: kind for key, kind in KINDS.items() if any(part.composed for part in kind.parts)}
"""Kinds that hold no pod spec; the table says what each field of one comes from."""

OF_A_CONTAINER = ("containers", "initContainers")
IDS = [f"{kind.group}-{kind.kind}-{'.'.join(path)}" for kind, _, path in PARTS]


@pytest.fixture(scope="session")
def served(definitions: list[Manifest]) -> dict[str, list[Served]]:
    """All versions that are served, by group and kind."""
    found: dict[str, list[Served]] = {}
    for each in served_versions(definitions):
        found.setdefault(key_of(each), []).append(each)
    return found


@pytest.fixture
def versions(kind: WorkloadKind, served: dict[str, list[Served]]) -> list[Served]:
    """The versions of a kind of the table."""
    found = served.get(key_of(kind), [])
    if not found and key_of(kind) in UNDEFINED:
        pytest.skip(f"{key_of(kind)}: {UNDEFINED[key_of(kind)]}")
    if key_of(kind) in IN_TEST_DATA and not find_testdata(os.environ):
        pytest.skip(f"{key_of(kind)}: its definition is in the test data: set {TESTDATA}")
    return found


@pytest.mark.parametrize(("kind", "part", "path"), PARTS, ids=IDS)
def test_a_path_of_the_table_leads_to_a_pod_spec(kind, part, path, versions):
    assert versions
    for version in versions:
        found = descend(version.schema, path)
        assert found is not None, f"{version} has no {'.'.join(path)}"
        schema, _ = found
        if key_of(kind) in OPEN:
            assert schema == {}
        elif key_of(kind) in MACHINES:
            assert {"domain", "nodeSelector", "affinity", "resourceClaims"} <= schema["properties"].keys()
        else:
            assert schema["properties"]["containers"]["items"]["properties"]["resources"]
            assert {"nodeSelector", "affinity", "resourceClaims"} <= schema["properties"].keys()


GONE = {"workloadRef"}
"""Fields of pods that a minor had for a while, and that definitions made for it still have."""


def unknown_to_servers(schema: Mapping[str, Any], type_name: str, path: str) -> Iterator[str]:
    """Yield the fields of a schema that pods of the newest minor do not have."""
    fields = read_core_schemas(SUPPORTED_MINORS[-1]).fields(type_name)
    for name, schema_of_field in schema.get("properties", {}).items():
        if name not in fields:
            if name not in GONE:
                yield f"{path}.{name}"
            continue
        type_, below = fields[name], schema_of_field
        while type_.item is not None:
            below = below.get("items") or below.get("additionalProperties") or {}
            type_ = type_.item
        if type_.fields_of and isinstance(below, Mapping):
            yield from unknown_to_servers(below, type_.fields_of, f"{path}.{name}")


@pytest.mark.parametrize(("kind", "part", "path"), PARTS, ids=IDS)
def test_a_pod_template_has_no_field_that_is_reported_as_unknown(kind, part, path, versions):
    if any(each.is_spec or each.composed for each in kind.parts):
        # Their fields are not checked.
        return
    for version in versions:
        if found := descend(version.schema, path):
            assert list(unknown_to_servers(found[0], POD_SPEC_TYPE, "spec")) == [], version


@pytest.mark.parametrize("kind", COMPOSED.values(), ids=COMPOSED)
def test_what_a_pod_spec_is_composed_of_has_the_schema_of_that_field(kind, versions):
    assert versions
    for version in versions:
        for part in kind.parts:
            for name, paths in part.composed:
                for path in paths:
                    found = descend(version.schema, path)
                    assert found is not None, f"{version} has no {'.'.join(path)}"
                    schema = found[0].get("items", found[0]) if name in OF_A_CONTAINER else found[0]
                    assert looks_like(name, schema), f"{version}: {'.'.join(path)} is no {name}"


def looks_like(name: str, schema: Mapping[str, Any]) -> bool:
    """Checks by its fields that a schema is that of a field of a pod spec, or of one container in its lists."""
    fields = set(schema.get("properties", {}))
    if name == "resourceClaims":
        return {"resourceClaimName", "resourceClaimTemplateName"} <= set(schema["items"]["properties"])
    if name == "tolerations":
        return {"key", "operator", "effect"} <= set(schema["items"]["properties"])
    if name == "nodeSelector":
        return bool(schema["additionalProperties"] == {"type": "string"})
    if name in OF_A_CONTAINER:
        # What Argo runs for a manifest or for data has a container of its own, without requests of the object's.
        return "image" in fields or "manifest" in fields or "transformation" in fields
    wanted = {"affinity": {"nodeAffinity", "podAffinity"}, "resources": {"limits", "requests"}}
    return wanted[name] <= fields if name in wanted else bool(schema["type"] == "string")


@pytest.mark.parametrize("kind", COMPOSED.values(), ids=COMPOSED)
def test_a_server_keeps_the_claims_that_a_pod_spec_is_composed_of(kind, versions, definitions, server):
    for part in kind.parts:
        paths = dict(part.composed)
        first = paths["containers"][0]
        holder = paths["resourceClaims"]
        define(
            server,
            [
                asking_for_pods_alone(each, [first, *holder])
                for each in definitions
                if kind_of(each) == key_of(kind)
            ],
        )
        for version in versions:
            for path in holder:
                entry = (descend(version.schema, path) or ({}, ()))[0]["items"]["properties"]
                claims = [{name: value for name, value in each.items() if name in entry} for each in CLAIMS]
                body = object_with(version, path, claims)
                merge(body, object_with(version, first, {"command": ["main"]}))
                [found] = find_pod_templates(server.create(body, dry_run=True))
                assert [each.template_name for each in found.claims] == ["one-gpu"], str(version)
                assert strip(found.at("resourceClaims")) == ".".join(path)
                assert strip(found.at("containers[0]")) == ".".join(first)


def merge(into: Manifest, other: Manifest) -> None:
    """Puts the fields of another object into one; lists have one item each."""
    for name, value in other.items():
        held = into.setdefault(name, value)
        if isinstance(held, list) and isinstance(held[0], dict):
            merge(held[0], value[0])
        elif isinstance(held, dict):
            merge(held, value)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_fields_that_the_table_reads_are_in_the_schema(kind, versions):
    fields = {
        path
        for part in (kind.parts if key_of(kind) != OF_A_RUNTIME else ())
        for path in (
            *(path for _, paths in part.composed for path in paths),
            *(
                at
                for each in (*part.numbers, *part.least, *part.most)
                for at in (each.at, each.at_least, each.at_most)
            ),
            part.autoscaled_by,
            part.name if len(part.name) > 1 else (),
            *(path for _, path in part.labels),
        )
        if path and path[0] != "metadata"
    }
    fields |= {path for path, _ in kind.unmodelled if path[0] != "metadata"} | ({kind.gang_of} - {()})
    gone = {path for of, path in map(str.split, OLDER_FIELDS) if of == key_of(kind)}
    for version in versions:
        # An older version that is served beside it may lack what came later.
        if version.is_stored:
            missing = {".".join(path) for path in fields if descend(version.schema, path) is None}
            assert missing == gone, str(version)


def test_the_pods_of_a_train_job_are_those_of_its_runtime(served):
    """What the table reads in a TrainJob is, below `spec.template`, what a runtime has."""
    kind = KINDS[OF_A_RUNTIME]
    for name in ("TrainingRuntime", "ClusterTrainingRuntime"):
        for version in served[f"{kind.group}/{name}"]:
            assert descend(version.schema, kind.gang) is not None
            for part in kind.parts:
                path = ("spec", "template", *part.path, "spec")
                assert list(find_pod_specs(version.schema)) == [path]
                for each in part.numbers:
                    assert descend(version.schema, ("spec", "template", *each.at)) is not None


def test_every_pod_spec_of_a_schema_is_in_the_table(served):
    no_pods = {key for key, kind in KINDS.items() if not kind.parts}
    unknown = {
        f"{version}: {'.'.join(path)}"
        for key, versions in served.items()
        if key not in {*NOT_IN_TABLE, *ONLY_CONTAINERS, *no_pods}
        for version in versions
        for path in find_pod_specs(version.schema)
        if path not in named_by_the_table(version)
        and f"{key} {'.'.join(path)}" not in NOT_A_POD_SPEC
        and key not in COMPOSED
    }
    assert not unknown


def named_by_the_table(version: Served) -> set[Path]:
    """Paths of pod specs in the table, as they are in the schema of a version."""
    paths = [path for kind, _, path in PARTS if key_of(kind) == key_of(version)]
    return {found[1] for path in paths if (found := descend(version.schema, path)) is not None}


def test_every_kind_with_containers_is_in_the_table(served):
    known = {*KINDS, *NOT_IN_TABLE, *ONLY_CONTAINERS}
    unknown = {
        str(version)
        for key, versions in served.items()
        for version in versions
        if key not in known and list(find_containers(version.schema))
    }
    assert not unknown


def test_reasons_are_given_only_for_what_is_there(served):
    for key in NOT_IN_TABLE:
        assert all(list(find_pod_specs(each.schema)) for each in served[key]), key
    for key in (key for key, why in NOT_IN_TABLE.items() if why == KNOWS_NO_CLAIMS):
        specs = [(each, path) for each in served[key] for path in find_pod_specs(each.schema)]
        assert all(descend(each.schema, (*path, "resourceClaims")) is None for each, path in specs), key
    for key in ONLY_CONTAINERS:
        assert all(list(find_containers(each.schema)) for each in served[key]), key
    for key, path in map(str.split, NOT_A_POD_SPEC):
        assert all(descend(each.schema, tuple(path.split("."))) for each in served[key]), key
    assert not {*NOT_IN_TABLE, *ONLY_CONTAINERS} & KINDS.keys()
    assert {*UNDEFINED, *OPEN, *MACHINES, OF_A_RUNTIME} <= KINDS.keys()
    assert not UNDEFINED.keys() & served.keys()


def test_a_server_keeps_a_claim_where_the_table_finds_it(definitions, server):
    """The definitions are the real ones but for what they ask of an object beside its pods."""
    paths: dict[str, list[Path]] = {}
    for kind, _, path in PARTS:
        paths.setdefault(key_of(kind), []).append(path)
    left = [each for each in definitions if kind_of(each) in paths]
    while left:
        # Two projects define MPIJob, each at a version of its own: a server has one of them at a time.
        together = {each["metadata"]["name"]: each for each in left}
        left = [each for each in left if each not in together.values()]
        define(server, [asking_for_pods_alone(each, paths[kind_of(each)]) for each in together.values()])
        for version in served_versions(together.values()):
            spec = MACHINE_SPEC if key_of(version) in MACHINES else POD_SPEC
            for path in paths[key_of(version)]:
                held = server.create(object_with(version, path, spec), dry_run=True)
                found = [each for each in find_pod_templates(held) if each.claims]
                assert {strip(each.path) for each in found} == {".".join(path)}, str(version)
                assert {each.claims[0].template_name for each in found} == {"one-gpu"}


def kind_of(definition: Manifest) -> str:
    return f"{definition['spec']['group']}/{definition['spec']['names']['kind']}"


def strip(path: str) -> str:
    """`spec.tasks[0].template.spec` and `spec.roles.held.template.spec` as the table writes them."""
    return path.replace("[0]", f".{ANY}").replace(".held", f".{ANY}")
