"""Pods whose fields stand apart in their objects: templates of Argo Workflows, and services of the NIM operator."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any, Final

from dra_infra.kubernetes.api import find_all, mapping, mappings, show_steps, value_at
from dra_infra.migration.needs import Settings, asks_devices
from dra_infra.migration.old_dra.objects import replaced
from dra_infra.migration.outcomes import Remark
from dra_infra.migration.pod_claims import NameTemplate
from dra_infra.migration.pods import migrate_pod

_FLOWS: Final[Mapping[str, tuple[str, ...]]] = {
    "Workflow": ("spec",),
    "WorkflowTemplate": ("spec",),
    "CronWorkflow": ("spec", "workflowSpec"),
}
"""Kinds of Argo, and where each has templates of which each is a pod in parts."""

_OF_PODS: Final = (
    "initContainers",
    "resourceClaims",
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
)
"""Fields of these templates, and of a NIMService, that are called as in pods; a template's own one replaces that of the object."""


def migrate_flow(
    manifest: Mapping[str, Any],
    settings: Settings,
    name_template: NameTemplate,
    refused: Container[str],
) -> tuple[Mapping[str, Any], list[Remark]]:
    """Migrates templates of Argo's that say all of their pods, and services of the NIM operator; others stay, as do those *refused*, by path.

    Source: createWorkflowPod and addSchedulingConstraints in workflow/controller/workflowpod.go of Argo Workflows 4.1.2.
    """
    group = str(manifest.get("apiVersion")).partition("/")[0]
    kind = str(manifest.get("kind"))
    if group == "apps.nvidia.com":
        return _migrate_nims(manifest, settings, name_template, refused)
    steps = _FLOWS.get(kind, ()) if group == "argoproj.io" else ()
    flow = mapping(value_at(manifest, *steps))
    changed = manifest
    remarks = list[Remark]()
    templates = flow.get("templates") if steps else ()
    beside = [flow.get(each) for each in ("podSpecPatch", "templateDefaults", "nodeSelector", "affinity")]
    # Steps and DAGs give theirs to templates that have none.
    outer = (each for each in mappings(templates) if "steps" in each or "dag" in each)
    if any(beside) or any(each.get(name) for each in outer for name in _OF_PODS):
        return manifest, []
    for index, each in enumerate(templates if isinstance(templates, list) else ()):
        template = mapping(each)
        at = f"{'.'.join(steps)}.templates[{index}]"
        if at in refused:
            continue
        new, told = _migrate_template(template, flow, settings, name_template)
        if new.get("resourceClaims") != template.get("resourceClaims"):
            message = "Argo Workflows gives claims to pods from 4.1 on; servers refuse the pods of older ones"
            told.append(Remark("resourceClaims", "changed", "controller-setting-written", message))
        remarks += [remark._replace(path=f"{at}.{remark.path}") for remark in told]
        changed = changed if new is template else replaced(changed, (*steps, "templates", index), new)
    return changed, remarks


def _migrate_template(
    template: Mapping[str, Any], flow: Mapping[str, Any], settings: Settings, name_template: NameTemplate
) -> tuple[Mapping[str, Any], list[Remark]]:
    main = next((each for each in ("container", "script") if isinstance(template.get(each), Mapping)), "")
    sidecars = template.get("sidecars") or []
    if not main or template.get("podSpecPatch") or not isinstance(sidecars, list):
        return template, []
    held = {name: value for name in _OF_PODS if (value := template.get(name) or flow.get(name))}
    spec = {**held, "containers": [template[main], *sidecars]}
    pod = migrate_pod(spec, settings, name_template)
    remarks = in_places(pod.remarks, [main, *(f"sidecars[{index}]" for index in range(len(sidecars)))])
    if pod.spec == spec:
        return template, remarks
    given = {name: pod.spec.get(name) for name in _OF_PODS}
    new = {name: each for name, each in given.items() if name in template or each != held.get(name)}
    first, *rest = pod.spec["containers"]
    new |= {main: first, "sidecars": rest}
    return {key: value for key, value in {**template, **new}.items() if value or key not in new}, remarks


def _migrate_nims(
    manifest: Mapping[str, Any],
    settings: Settings,
    name_template: NameTemplate,
    refused: Container[str],
) -> tuple[Mapping[str, Any], list[Remark]]:
    """Migrates NIMServices, also those of a NIMPipeline: their operator gives claims to all containers of a pod.

    Source: internal/controller/platform/standalone and internal/shared/resourceclaims.go of NVIDIA/k8s-nim-operator 3.1.2.
    """
    changed = manifest
    remarks = list[Remark]()
    path = ("spec", "services", "*", "spec") if manifest.get("kind") == "NIMPipeline" else ("spec",)
    for steps, service in find_all(manifest, path):
        held = mapping(service)
        above = show_steps(steps)
        if above in refused or "draResources" in held or held.get("inferencePlatform") == "kserve":
            continue
        main = {name: held[name] for name in ("env", "resources") if name in held}
        pod = {name: held[name] for name in _OF_PODS if name in held}
        new, told = _migrate_template({**pod, "container": main}, {}, settings, name_template)
        entries = new.get("resourceClaims", ())
        told = told if entries else [each for each in told if each.outcome != "changed"]
        remarks += [each._replace(path=f"{above}.{each.path.removeprefix('container.')}") for each in told]
        if entries:
            container = new["container"]
            own = {**_less(new, "container", "resourceClaims"), **_less(container, "resources")}
            own["resources"] = _less(container["resources"], "claims") or None
            own["draResources"] = [_less(each, "name") for each in entries]
            left = {**held, **dict.fromkeys((*_OF_PODS, *main)), **own}
            changed = replaced(
                changed, steps, {name: each for name, each in left.items() if each is not None}
            )
            message = "the NIM operator gives it to all containers from 3.0 on, and lets no service that is there change it: delete that first"
            remarks.append(Remark(f"{above}.draResources", "changed", "controller-setting-written", message))
        elif value_at(held, "storage", "nimCache", "profile") and not asks_devices({"containers": [main]}):
            message = "the NIM operator asks for as many nvidia.com/gpu as the profile says, where nothing else is written"
            hint = f"make a template NAME with as many, and write {above}.draResources: [{{resourceClaimTemplateName: NAME}}]"
            at = f"{above}.storage.nimCache.profile"
            remarks = [each for each in remarks if each.path != f"{above}.runtimeClassName"]
            remarks.append(Remark(at, "decide", "kind-not-rewritten", message, hint))
    return changed, remarks


def _less(held: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: each for name, each in held.items() if name not in names}


def in_places(remarks: Sequence[Remark], places: Sequence[str]) -> list[Remark]:
    """Remarks in which the containers of a pod are called as where they stand."""
    found = {f"containers[{index}]": place for index, place in enumerate(places)}
    called = partial(re.compile(r"(?<!\w)containers\[\d+\]").sub, lambda each: found.get(each[0], each[0]))
    return [each._replace(path=called(each.path), message=called(each.message)) for each in remarks]
