"""The objects by which Prometheus and Grafana watch devices: rules, monitors of the node plugin, and a dashboard.

Conventions are those of kubernetes-mixin: names of alerts and groups, severities, annotations, jobs, and the variables of dashboards.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import Release, names
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import (
    check_labels,
    check_merged,
    is_list,
    is_one_of,
    is_output,
    shorten,
    wrong_plain_type,
    wrong_type,
)
from dra_infra.specs.component_plans import ComponentPlan, PlannedObject
from dra_infra.specs.metrics import PLUGIN, SEVERITIES, alerts, fill, metrics, metrics_of, panels
from dra_infra.specs.object_names import check_metadata
from dra_infra.target import ClusterTarget

_VERSION: Final = "monitoring.coreos.com/v1"
_PLUGIN_LABEL: Final = {"app.kubernetes.io/name": PLUGIN}
_PORT: Final = "metrics"
_SIDECAR: Final = {"grafana_dashboard": "1"}
_JOB: Final = re.compile(r"[A-Za-z0-9_./:-]{1,200}")
_ADDRESS: Final = re.compile(r"https?://[^\s\"#]+")
_MOST_PORT: Final = 65535

_COLUMNS: Final = 2
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 7


@dataclass(frozen=True, kw_only=True)
class Watching:
    """Holds what is watched, and how it is told.

    Args:
        thresholds: By alert, where they are not those of the catalogue.
        severities: By alert, likewise.
        without: Alerts that are left out.
        jobs: Names of jobs, by who exposes the metrics.
        runbooks: Address of the page of runbooks; None for no `runbook_url`.
        plugin_namespaces: Namespaces with a node plugin; without any its alerts and panels are left out.
        plugin_port: Port of its metrics.
        selected_by: Labels by which Prometheus selects rules and monitors.
        dashboard: Labels by which Grafana's sidecar finds the dashboard; empty for none.
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    severities: Mapping[str, str] = field(default_factory=dict)
    without: Sequence[str] = ()
    jobs: Mapping[str, str] = field(default_factory=dict)
    runbooks: str | None = None
    plugin_namespaces: Sequence[Any] = ()
    plugin_port: int = 8080
    selected_by: Mapping[str, Any] = field(default_factory=dict)
    dashboard: Mapping[str, Any] = field(default_factory=dict)


def plan_monitoring(name: str, arguments: Mapping[str, Any], target: ClusterTarget) -> ComponentPlan:
    """Turn the arguments of `GpuMonitoring` into its objects, with the names of metrics of the target's newest minor.

    Raises:
        InvalidSpecError: With the problems of `check_watching`, and those of the name and of labels.
    """
    own = {each.name: arguments[each.name] for each in fields(Watching)}
    # None is an argument that is left out.
    for key in ("thresholds", "severities", "jobs", "selected_by"):
        own[key] = {} if own[key] is None else own[key]
    own["dashboard"] = _SIDECAR if own["dashboard"] is None else own["dashboard"]
    watching = Watching(**own)
    problems = [
        *check_name(name),
        *check_metadata(arguments),
        *check_merged("labels", arguments["labels"]),
        *check_watching(watching),
    ]
    if problems:
        raise InvalidSpecError(problems)
    shared = ("namespace", "labels", "annotations")
    metadata = {key: arguments[key] for key in shared if arguments[key] is not None}
    objects = []
    for manifest in compile_monitoring(name, watching, target.releases[-1], metadata):
        called = manifest["metadata"]["name"]
        objects.append(PlannedObject(key=f"{manifest['kind']} {called}", name=called, manifest=manifest))
    return ComponentPlan(objects=tuple(objects))


def compile_monitoring(
    name: str, watching: Watching, release: Release, metadata: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The objects: the rules, a Service and a monitor for each namespace with a plugin, and the dashboard.

    Args:
        name: What their names are or begin with.
        watching: What is watched.
        release: The minor and its gates, which decide on the names of metrics.
        metadata: Namespace, labels and annotations.
    """
    labels = metadata.get("labels", {})
    selected = {**metadata, "labels": {**labels, **watching.selected_by}}
    made: list[dict[str, Any]] = [
        {
            "apiVersion": _VERSION,
            "kind": "PrometheusRule",
            "metadata": {"name": name, **selected},
            "spec": {"groups": groups_of(watching, release)},
        }
    ]
    for number, namespace in enumerate(watching.plugin_namespaces):
        # One is the rule, and keeps its name where others come.
        called = f"{name}-plugin" if number == 0 else f"{name}-plugin-{number}"
        made += _plugin(called, namespace, watching, metadata, selected)
    if watching.dashboard:
        shown = {**metadata, "labels": {**labels, **watching.dashboard}}
        file = f"{name}.json"
        made.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-dashboard", **shown},
                "data": {file: json.dumps(dashboard_of(file, watching, release), indent=1)},
            }
        )
    return [
        {**each, "metadata": {key: value for key, value in each["metadata"].items() if value != {}}}
        for each in made
    ]


def groups_of(watching: Watching, release: Release) -> list[dict[str, Any]]:
    """The groups of alerts, one for each job."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, alert in alerts().items():
        exposed_by = metrics_of(alert.expr)[0].exposed_by
        if name in watching.without or (exposed_by == PLUGIN and not watching.plugin_namespaces):
            continue
        threshold = watching.thresholds.get(name, alert.threshold)
        expr = fill(
            alert.expr,
            release,
            watching.jobs,
            threshold="" if threshold is None else f"{threshold:.15g}",
        )
        if not expr:
            continue
        told = {"summary": alert.summary, "description": alert.description}
        if watching.runbooks:
            told["runbook_url"] = f"{watching.runbooks}#{name.lower()}"
        groups.setdefault(exposed_by, []).append(
            {
                "alert": name,
                "expr": expr,
                "for": alert.wait,
                "labels": {"severity": watching.severities.get(name, alert.severity)},
                "annotations": told,
            }
        )
    return [{"name": f"kubernetes-dra-{each}", "rules": rules} for each, rules in groups.items()]


def _plugin(
    name: str, namespace: Any, watching: Watching, metadata: Mapping[str, Any], selected: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """A headless Service for the pods of the plugin in a namespace, and what has Prometheus read them."""
    port = {"name": _PORT, "port": watching.plugin_port, "targetPort": watching.plugin_port}
    labels = {**metadata.get("labels", {}), **_PLUGIN_LABEL, "app.kubernetes.io/instance": name}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **metadata, "namespace": namespace, "labels": labels},
        # A plugin that is not ready has the most to tell.
        "spec": {
            "clusterIP": "None",
            "selector": _PLUGIN_LABEL,
            "ports": [port],
            "publishNotReadyAddresses": True,
        },
    }
    yield {
        "apiVersion": _VERSION,
        "kind": "ServiceMonitor",
        "metadata": {"name": name, **selected},
        "spec": {
            "jobLabel": "app.kubernetes.io/name",
            "namespaceSelector": {"matchNames": [namespace]},
            "selector": {"matchLabels": {**_PLUGIN_LABEL, "app.kubernetes.io/instance": name}},
            "endpoints": [{"port": _PORT}],
        },
    }


def dashboard_of(file: str, watching: Watching, release: Release) -> dict[str, Any]:
    """The dashboard, as Grafana reads it; its uid is made of the name of its *file*."""
    drawn: list[dict[str, Any]] = []
    for panel in panels():
        if metrics_of(panel.queries[0].expr)[0].exposed_by == PLUGIN and not watching.plugin_namespaces:
            continue
        queries = [
            (fill(each.expr, release, watching.jobs, selector=_CLUSTER, rate="$__rate_interval"), each.legend)
            for each in panel.queries
        ]
        targets = [
            {"datasource": _SOURCE, "expr": expr, "legendFormat": legend, "refId": chr(ord("A") + number)}
            for number, (expr, legend) in enumerate(queries)
            if expr
        ]
        if not targets:
            continue
        row, column = divmod(len(drawn), _COLUMNS)
        place = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT}
        drawn.append(
            {
                "id": len(drawn) + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": _SOURCE,
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "gridPos": place,
                "interval": "1m",
                "targets": targets,
            }
        )
    return {
        # As kubernetes-mixin makes them: it has to be the same in each run, and is no secret.
        "uid": hashlib.md5(file.encode(), usedforsecurity=False).hexdigest(),
        "title": "Kubernetes / Devices",
        "tags": ["dra-infra", "kubernetes-mixin"],
        "timezone": "UTC",
        "refresh": "10s",
        "schemaVersion": 39,
        "editable": False,
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables(watching, release)},
        "panels": drawn,
    }


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_CLUSTER: Final = 'cluster=~"$cluster"'


def _variables(watching: Watching, release: Release) -> list[dict[str, Any]]:
    claims = fill("<claims>{<job>}", release, watching.jobs)
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "cluster",
            "label": "cluster",
            "type": "query",
            "datasource": _SOURCE,
            "query": f"label_values({claims}, cluster)",
            # Where there is one cluster, no series has the label.
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "refresh": 2,
            "sort": 1,
        },
    ]


def check_name(name: object) -> Iterator[Problem]:
    """Problems of the component's name, with which those of Services begin: `wrong-type`, `invalid-name`."""
    if not isinstance(name, str):
        yield wrong_type("name", name, "a string", 'write a name such as "gpus"')
    elif not names.is_dns_label(f"{name}-plugin"):
        message = f"{shorten(name)} cannot begin the name of a Service"
        hint = "use at most 56 lower-case letters, digits and '-', such as 'gpus'"
        yield Problem(path="name", code="invalid-name", message=message, hint=hint)


def check_watching(watching: Watching) -> Iterator[Problem]:
    """Problems of what is watched, at the arguments of the same names.

    Codes: `wrong-type`, `unsupported-value`, `invalid-name`, `invalid-label`.
    """
    yield from _check_thresholds(watching.thresholds)
    yield from _check_severities(watching.severities)
    yield from _check_without(watching.without)
    yield from _check_jobs(watching.jobs)
    if watching.runbooks is not None:
        yield from _check_runbooks(watching.runbooks)
    yield from _check_namespaces(watching.plugin_namespaces)
    yield from _check_port(watching.plugin_port)
    for path, labels in (("selected_by", watching.selected_by), ("dashboard", watching.dashboard)):
        yield from check_merged(path, labels)
        yield from check_labels(labels, path)


def _mapping(path: str, given: object, hint: str) -> Iterator[Problem]:
    if not isinstance(given, Mapping):
        yield wrong_plain_type(path, given, "a mapping", hint)


def _known_alert(path: str, name: object, known: Sequence[str]) -> Iterator[Problem]:
    if is_one_of(name, known):
        return
    near = nearest(str(name)[:80], known)
    hint = f"did you mean {near!r}?" if near else f"write one of {', '.join(known)}"
    told = "has no threshold" if isinstance(name, str) and name in alerts() else "is no alert"
    yield Problem(path=path, code="unsupported-value", message=f"{shorten(name)} {told}", hint=hint)


def _check_thresholds(given: Any) -> Iterator[Problem]:
    hint = 'write thresholds={"KubeDRAPrepareSlow": 30}'
    yield from _mapping("thresholds", given, hint)
    known = [name for name, each in alerts().items() if each.threshold is not None]
    for name, value in given.items() if isinstance(given, Mapping) else ():
        yield from _known_alert("thresholds", name, known)
        path = f"thresholds[{shorten(name)}]"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            yield wrong_plain_type(path, value, "a number", hint)
        elif not (math.isfinite(value) and value >= 0):
            message = f"{shorten(value)} is not a number from 0 on"
            yield Problem(path=path, code="unsupported-value", message=message, hint=hint)


def _check_severities(given: Any) -> Iterator[Problem]:
    hint = 'write severities={"KubeDRAPrepareFailing": "critical"}'
    yield from _mapping("severities", given, hint)
    for name, value in given.items() if isinstance(given, Mapping) else ():
        yield from _known_alert("severities", name, list(alerts()))
        path = f"severities[{shorten(name)}]"
        if not isinstance(value, str):
            yield wrong_plain_type(path, value, "a severity", hint)
        elif value not in SEVERITIES:
            message = f"{shorten(value)} is no severity"
            told = f"write one of {', '.join(SEVERITIES)}"
            yield Problem(path=path, code="unsupported-value", message=message, hint=told)


def _check_without(given: Any) -> Iterator[Problem]:
    if not is_list(given):
        yield wrong_plain_type(
            "without", given, "a list of alerts", 'write without=["KubeDRAClaimQueueLong"]'
        )
        return
    for number, name in enumerate(given):
        yield from _known_alert(f"without[{number}]", name, list(alerts()))


def _check_jobs(given: Any) -> Iterator[Problem]:
    hint = 'write jobs={"kubelet": "kubernetes-nodes"}'
    yield from _mapping("jobs", given, hint)
    known = [each for each in dict.fromkeys(each.exposed_by for each in metrics().values()) if each != PLUGIN]
    for name, job in given.items() if isinstance(given, Mapping) else ():
        if not is_one_of(name, known):
            message = f"{shorten(name)} exposes no metric of devices"
            told = f"write one of {', '.join(known)}"
            yield Problem(path="jobs", code="unsupported-value", message=message, hint=told)
        path = f"jobs[{shorten(name)}]"
        if not isinstance(job, str):
            yield wrong_plain_type(path, job, "the name of a job", hint)
        elif not _JOB.fullmatch(job):
            message = f"{shorten(job)} is not the name of a job"
            yield Problem(path=path, code="invalid-name", message=message, hint=hint)


def _check_runbooks(given: object) -> Iterator[Problem]:
    hint = 'write runbooks="https://wiki.example.com/gpus"'
    if not isinstance(given, str):
        yield wrong_plain_type("runbooks", given, "an address", hint)
    elif not _ADDRESS.fullmatch(given):
        message = f"{shorten(given)} is not the address of a page"
        yield Problem(path="runbooks", code="unsupported-value", message=message, hint=hint)


def _check_namespaces(given: Any) -> Iterator[Problem]:
    path, hint = "plugin_namespaces", 'write plugin_namespaces=["dra-infra-plugin"], or [] for none'
    if not is_list(given):
        yield wrong_plain_type(path, given, "a list of namespaces", hint)
        return
    for number, namespace in enumerate(given):
        if is_output(namespace):
            continue
        if not isinstance(namespace, str):
            yield wrong_type(f"{path}[{number}]", namespace, "the name of a namespace", hint)
        elif not names.is_dns_label(namespace):
            message = f"{shorten(namespace)} is not the name of a namespace"
            yield Problem(path=f"{path}[{number}]", code="invalid-name", message=message, hint=hint)


def _check_port(given: object) -> Iterator[Problem]:
    hint = "write plugin_port=8080, which is the metrics_port of NodePlugin"
    if isinstance(given, bool) or not isinstance(given, int):
        yield wrong_plain_type("plugin_port", given, "a port", hint)
    elif not 1 <= given <= _MOST_PORT:
        message = f"{given} is not a port"
        yield Problem(path="plugin_port", code="unsupported-value", message=message, hint=hint)
