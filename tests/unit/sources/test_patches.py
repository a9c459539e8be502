"""Patches of kustomizations and parts of objects: known as such, told, and left as they are."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.errors import Problem
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.sources.files import read_sources
from dra_infra.sources.patches import find_patches, find_repeated, migrate_sources, read_parts

SETTINGS = Settings(plugin=DevicePlugin())
LIMITS = "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"
WHOLE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "serve"},
    "spec": {
        "selector": {"matchLabels": {"app": "serve"}},
        "template": {
            "metadata": {"labels": {"app": "serve"}},
            "spec": {
                "containers": [
                    {"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
                ]
            },
        },
    },
}
OPERATIONS = [
    {"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu", "value": 2}
]


def put(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        (file if file.suffix or name.endswith("Kustomization") else file.with_suffix(".yaml")).write_text(
            content if isinstance(content, str) else json.dumps(content)
        )
    return folder


def migrate(*paths: Path) -> tuple[dict[str, Migrated], list[Problem]]:
    """What became of the objects by the name of their file, and the problems."""
    found = list(read_sources([str(each) for each in paths], io.BytesIO()))
    problems = [each for each in found if isinstance(each, Problem)]
    sources = [each for each in found if not isinstance(each, Problem)]
    files = [each.file for each in sources] + [each.place.file for each in problems if each.place]
    patches = find_patches(files)
    parts, problems = read_parts(problems, patches)
    sources += parts
    done, _ = migrate_sources(sources, SETTINGS, patches)
    for source, each in zip(sources, done, strict=True):
        assert each.manifest is source.manifest or not any(
            remark.code == "patch-not-rewritten" for remark in each.remarks
        )
    return {Path(source.file).name: each for source, each in zip(sources, done, strict=True)}, problems


def told(done: Migrated) -> list[tuple[str, str]]:
    return [(each.code, each.path) for each in done.remarks]


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
@pytest.mark.parametrize(
    "kustomization",
    [
        {"patches": [{"path": "patches/gpus.yaml"}]},
        {"patches": [{"path": "./patches/../patches/gpus.yaml", "target": {"kind": "Deployment"}}]},
        {"patchesStrategicMerge": ["patches/gpus.yaml"]},
        {"patchesJson6902": [{"path": "patches/gpus.yaml", "target": {"kind": "Deployment"}}]},
    ],
)
def test_what_a_kustomization_names_as_a_patch_is_told_and_stays(
    tmp_path: Path, name: str, kustomization: dict[str, Any]
):
    # It has an image and a selector: nothing but the kustomization says that it is a patch.
    put(tmp_path, patches__gpus=WHOLE, serve=WHOLE)
    (tmp_path / name).write_text(json.dumps(kustomization))
    done, problems = migrate(tmp_path)
    assert told(done["gpus.yaml"]) == [("patch-not-rewritten", LIMITS)]
    assert f"{name} names it as a patch" in done["gpus.yaml"].remarks[0].message
    assert done["serve.yaml"].added
    assert not problems


def test_a_patch_with_its_whole_path_is_known(tmp_path: Path):
    put(tmp_path, kustomization={"patches": [{"path": str(tmp_path / "gpus.yaml")}]}, gpus=WHOLE)
    done, _ = migrate(tmp_path)
    assert told(done["gpus.yaml"]) == [("patch-not-rewritten", LIMITS)]


def test_a_patch_is_known_where_it_is_named_alone(tmp_path: Path):
    put(tmp_path, kustomization={"patches": [{"path": "patches/gpus.yaml"}]}, patches__gpus=WHOLE)
    done, _ = migrate(tmp_path / "patches" / "gpus.yaml")
    assert told(done["gpus.yaml"]) == [("patch-not-rewritten", LIMITS)]


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (OPERATIONS[0], "[0].value[nvidia.com/gpu]"),
        (
            {"op": "add", "path": "/spec/resources", "value": {"limits": {"nvidia.com/gpu": 1}}},
            "[0].value.resources.limits[nvidia.com/gpu]",
        ),
        (
            {"op": "add", "path": "/spec/resources/limits", "value": {"amd.com/gpu": 1}},
            "[0].value.limits[amd.com/gpu]",
        ),
    ],
)
def test_operations_on_resources_are_told_and_are_no_problem(
    tmp_path: Path, operation: dict[str, Any], path: str
):
    put(tmp_path, kustomization={"patches": [{"path": "ops.yaml"}]}, ops=[operation, "no operation", {}])
    done, problems = migrate(tmp_path)
    assert told(done["ops.yaml"]) == [("patch-not-rewritten", path)]
    assert not problems


def test_patches_in_the_kustomization_are_told_there(tmp_path: Path):
    kustomization = {
        "patches": [{"path": "none.yaml"}, {"patch": json.dumps(OPERATIONS)}],
        "patchesJson6902": [{"patch": json.dumps(OPERATIONS)}],
        "patchesStrategicMerge": [json.dumps(WHOLE, indent=1)],
    }
    done, _ = migrate(put(tmp_path, kustomization=kustomization))
    assert told(done["kustomization.yaml"]) == [
        ("patch-not-rewritten", "patches[1].patch"),
        ("patch-not-rewritten", "patchesJson6902[0].patch"),
        ("patch-not-rewritten", "patchesStrategicMerge[0]"),
    ]


def test_patches_without_devices_are_nothing_to_migrate(tmp_path: Path):
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {"replicas": 3},
    }
    kustomization = {"patches": [{"path": "more.yaml"}, {"patch": json.dumps(patch)}, {"path": "ops.yaml"}]}
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    done, problems = migrate(put(tmp_path, kustomization=kustomization, more=patch, ops=operations))
    assert [told(each) for each in done.values()] == [[], [], []]
    assert not problems


def test_a_list_that_nobody_names_is_no_object(tmp_path: Path):
    _, problems = migrate(put(tmp_path, ops=OPERATIONS, serve=WHOLE))
    assert [each.code for each in problems] == ["yaml-not-an-object"]


@pytest.mark.parametrize("lacks", ["image", "selector"])
def test_a_part_is_known_by_what_it_lacks(tmp_path: Path, lacks: str):
    part = json.loads(json.dumps(WHOLE))
    holder = part["spec"] if lacks == "selector" else part["spec"]["template"]["spec"]["containers"][0]
    del holder[lacks]
    done, _ = migrate(put(tmp_path, part=part))
    assert told(done["part.yaml"]) == [("patch-not-rewritten", LIMITS)]
    assert f"has no {lacks}" in done["part.yaml"].remarks[0].message


def test_a_part_of_old_dra_is_told_by_its_first_field(tmp_path: Path):
    old = {"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClaim", "metadata": {"name": "one"}}
    old["spec"] = {"resourceClassName": "gpu.nvidia.com"}
    done, _ = migrate(put(tmp_path, kustomization={"patches": [{"path": "old.yaml"}]}, old=old))
    assert [each.code for each in done["old.yaml"].remarks] == ["patch-not-rewritten"]


@pytest.mark.parametrize("key", ["namePrefix", "nameSuffix"])
def test_new_names_that_pods_do_not_follow_are_told(tmp_path: Path, key: str):
    put(tmp_path, serve=WHOLE, kustomization={key: "dev-"})
    done, _ = migrate(tmp_path)
    assert told(done["kustomization.yaml"]) == [("names-not-followed", key)]
    put(tmp_path, kustomization={key: "dev-", "configurations": ["names.yaml"]})
    done, _ = migrate(tmp_path)
    assert told(done["kustomization.yaml"]) == []


@pytest.mark.parametrize(
    "kustomization",
    [
        {"patches": [{"path": "/etc/passwd"}, {"path": "../../../../etc/passwd"}, {"path": "x\0y"}]},
        {"patches": [{"path": 3}, {"patch": 3}, 3, None, {"path": ["a"]}], "patchesStrategicMerge": [3, {}]},
        {"patches": {"path": "gpus.yaml"}, "patchesJson6902": "gpus.yaml", "patchesStrategicMerge": None},
        {"patches": [{"path": "a" * 100_000}, {"patch": "[" * 10_000}, {"patch": "a: &a [*a]"}]},
        {"patches": [{"path": "https://example.com/gpus.yaml"}], "resources": [".", "..", "loop"]},
        {"patches": [{"patch": "a: &a [1,1,1,1]\nb: &b [*a,*a,*a,*a]\n" * 2}], "namePrefix": {}},
        ["patches"],
        "patches: [",
    ],
)
def test_kustomizations_of_strangers_do_no_harm(tmp_path: Path, kustomization: Any):
    put(tmp_path, folder__serve=WHOLE, folder__kustomization=kustomization)
    (tmp_path / "folder" / "loop").symlink_to("loop")
    (tmp_path / "folder" / "up").symlink_to("..")
    done, _ = migrate(tmp_path)
    assert done["serve.yaml"].added


def test_a_pointer_of_many_steps_is_read_at_its_end(tmp_path: Path):
    operation = {"op": "add", "path": "/a" * 100_000 + "/limits/nvidia.com~1gpu", "value": 1}
    put(tmp_path, kustomization={"patches": [{"path": "ops.yaml"}]}, ops=[operation])
    done, _ = migrate(tmp_path)
    assert told(done["ops.yaml"]) == [("patch-not-rewritten", "[0].value[nvidia.com/gpu]")]


def test_no_kustomization_above_the_repository_is_asked(tmp_path: Path):
    put(tmp_path, kustomization={"patches": [{"path": "repository/serve.yaml"}]}, repository__serve=WHOLE)
    (tmp_path / "repository" / ".git").mkdir()
    done, _ = migrate(tmp_path / "repository")
    assert done["serve.yaml"].added


def copies(folder: Path, *names: str) -> list[str]:
    """The files with an object that was there before."""
    found = list(read_sources([str(folder / name) for name in names], io.BytesIO()))
    sources = [each for each in found if not isinstance(each, Problem)]
    problems = find_repeated(sources, find_patches([each.file for each in sources]))
    return [str(Path(each.place.file).relative_to(folder)) for each in problems if each.place]


OVERLAYS = ("dev/q.yaml", "prod/q.yaml", "qa/q.yaml", "prod/z.yaml")


@pytest.mark.parametrize("names", [OVERLAYS, sorted(OVERLAYS)], ids=["as named", "sorted"])
def test_a_copy_in_an_overlay_is_told_whatever_other_overlays_have_the_object(tmp_path: Path, names: Any):
    for name in ("dev", "prod", "qa"):
        put(tmp_path, **{f"{name}__kustomization": {}, f"{name}__q": WHOLE, f"{name}__z": WHOLE})
    assert copies(tmp_path, *names) == ["prod/z.yaml"]


@pytest.mark.parametrize(
    ("kustomization", "namespace", "again"),
    [
        ("b", "default", True),
        ("", "default", True),
        ("", "ml", False),
        ("a", "default", False),
        ("a", "", True),
    ],
)
def test_without_a_namespace_an_object_is_in_the_default_one_unless_a_kustomization_may_give_it_another(
    tmp_path: Path, kustomization: str, namespace: str, *, again: bool
):
    put(tmp_path, a__one=WHOLE, b__two={**WHOLE, "metadata": {"name": "serve", "namespace": namespace}})
    if kustomization:
        put(tmp_path, **{f"{kustomization}__kustomization": {"namespace": "team"}})
    assert copies(tmp_path, "a/one.yaml", "b/two.yaml") == ["b/two.yaml"] * again
    assert copies(tmp_path, "b/two.yaml", "a/one.yaml") == ["a/one.yaml"] * again
