"""Puts together what a program registered: its objects in the order of reports, and what several of them get wrong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dra_infra.catalog.drivers import read_pins
from dra_infra.errors import InvalidSpecError, Problem, in_reading_order
from dra_infra.kubernetes.api import group_of, is_placeholder
from dra_infra.program.charts import read_release
from dra_infra.program.monitor import Monitor, is_object, is_of_kubernetes
from dra_infra.program.project import Project, driver_of, gates_of, kubernetes_of
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.resource_options import NO_OPTIONS
from dra_infra.target import NEWEST_DRIVER, ClusterTarget


def collect(
    project: Project, monitor: Monitor, problems: tuple[Problem, ...], targets: Mapping[str, ClusterTarget]
) -> Program:
    """Return what a program asked the monitor for: objects, releases, options, and what is not known.

    Args:
        project: The project of the program.
        monitor: What answered it.
        problems: What its components reported.
        targets: The clusters of its components, by component.
    """
    objects = []
    releases = []
    for chart in monitor.empty_charts:
        monitor.note_made_by_provider(chart)
    of_kubernetes = [
        each for each in monitor.registrations.values() if each.custom and is_of_kubernetes(each.type)
    ]
    manifests = monitor.names.shown_in(
        {
            each.urn: complete_manifest(each.type, each.inputs)
            for each in of_kubernetes
            if is_object(each.type)
        }
    )
    for registration in of_kubernetes:
        if registration.urn not in manifests:
            monitor.note_made_by_provider(registration)
            if found := read_release(registration, targets.get(str(registration.component))):
                releases.append(
                    replace(
                        found,
                        namespace=monitor.names.shown(found.namespace),
                        values=monitor.names.shown(found.values),
                    )
                )
            continue
        options = registration.options
        delete_first = options.delete_before_replace and "spec" in options.replace_on_changes
        objects.append(
            ProgramObject(
                urn=registration.urn,
                manifest=manifests[registration.urn],
                component=registration.component,
                replacement="delete-first" if delete_first else "provider",
                place=registration.place,
                target=targets.get(str(registration.component)),
                provider=registration.provider,
            )
        )
    return Program(
        project=project.name,
        stack=project.stack,
        objects=tuple(sorted(objects, key=lambda each: each.sort_key)),
        not_seen=tuple(sorted({*monitor.not_seen, *project.not_seen})),
        problems=in_reading_order([*problems, *monitor.problems, *_find_made_twice(objects)]),
        kubernetes=kubernetes_of(project.config),
        gates=gates_of(project.config),
        driver=_known(driver_of(project.config)),
        releases=tuple(sorted(releases, key=lambda each: each.urn)),
        stand_in_classes=monitor.stand_ins.classes,
        resources=tuple(sorted(monitor.registrations)),
        options={
            each.urn: each.options for each in monitor.registrations.values() if each.options != NO_OPTIONS
        },
    )


def _find_made_twice(objects: Sequence[ProgramObject]) -> Iterator[Problem]:
    """Yield a problem for each object of a cluster that an earlier resource makes too: its create is refused."""
    first: dict[tuple[str, ...], ProgramObject] = {}
    for each in objects:
        ref = each.ref
        is_known = each.has_known_name and not is_placeholder(ref.namespace)
        # A resource for a patch, such as ConfigMapPatch, changes an object that another one makes.
        if not is_known or each.urn.split("::", 3)[2].endswith(f":{ref.kind}Patch"):
            continue
        key = (each.provider, group_of(each.manifest), ref.kind, ref.namespace or "default", ref.name)
        other = first.setdefault(key, each)
        if other is not each:
            yield Problem(
                path=str(each.component or ref),
                code="duplicate-object",
                message=f"makes {ref}, which {_describe_maker(other)} makes too: `pulumi up` refuses the second, it already exists",
                hint="give one of them another name or namespace, or share one resource",
                place=each.place,
            )


def _describe_maker(item: ProgramObject) -> str:
    """Return the resource with its parents, by which two with one name can be told apart."""
    _, _, types, name = item.urn.split("::", 3)
    where = f" at {item.place}" if item.place else ""
    return f"{types.replace('$', ' > ')} {name}{where}"


def complete_manifest(type_: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with apiVersion and kind, which a program may leave to the resource type."""
    _, api_version, kind = type_.split(":", 2)
    return {"apiVersion": api_version.removeprefix("core/"), "kind": kind, **inputs}


def _known(release: str) -> str:
    try:
        read_pins(release)
    except InvalidSpecError:
        return NEWEST_DRIVER
    return release
