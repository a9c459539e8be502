"""Tenants with templates that are right by themselves; roles; guardrails; what watches devices; queues; and taints."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

import dra_infra as dra
from tests.support.arguments import values
from tests.support.arguments.calls import Call, Later
from tests.support.arguments.claims import class_names

_TEMPLATES = st.sampled_from(
    (
        partial(dra.GpuClaimTemplate, device_class="gpu.nvidia.com", count=4),
        partial(dra.MigPartition, profile="1g.10gb"),
        partial(dra.SharedGpu),
    )
)
_LEVELS = st.sampled_from(("privileged", "baseline", "restricted"))
_CLASSES = class_names | st.sampled_from(("h100", "a" * 64, f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 33}"))


@st.composite
def tenants(draw: st.DrawFn) -> Call:
    """A tenant with up to three classes and two templates."""
    rest = st.fixed_dictionaries(
        {},
        optional={
            "quota": st.dictionaries(_CLASSES, st.integers(0, 10_000), max_size=3),
            "hard": st.dictionaries(
                st.sampled_from(
                    (
                        "pods",
                        "requests.cpu",
                        "limits.memory",
                        "requests.example.com/other",
                        "count/jobs.batch",
                        "gpus",
                    )
                ),
                st.sampled_from((0, 100, "64", "1500m", "2Ti")),
                max_size=2,
            ),
            "templates": st.dictionaries(st.sampled_from(("trainer", "t" * 40)), _TEMPLATES, max_size=2),
            "admin_access": st.booleans(),
            "pod_security": st.one_of(
                _LEVELS,
                st.builds(
                    dra.PodSecurity,
                    enforce=_LEVELS,
                    audit=st.none() | _LEVELS,
                    warn_version=st.sampled_from((None, "latest", "v1.37", "1.37")),
                ),
            ),
            "namespace": st.sampled_from(("ml", "n" * 63, Later("later"))),
            "create_namespace": st.booleans(),
            "namespace_labels": values.labels,
            "labels": values.labels,
            "annotations": values.annotations,
        },
    )
    return Call("GpuTenant", draw(st.sampled_from(("vision", "speech"))), draw(rest))


_SUBJECTS = st.lists(
    st.sampled_from(("user:alice@example.com", "group:a:b", "user:\"\\'\n", "serviceaccount:ci/runner")),
    max_size=3,
)
_SPACES = st.sampled_from(("vision", "n" * 63))
_COMMON = {"labels": values.labels, "annotations": values.annotations}


@st.composite
def roles(draw: st.DrawFn) -> Call:
    """Roles with members of the cluster, and drivers."""
    personas = st.sampled_from(("platform-admin", "on-call", "reader", "device-reader"))
    rest = st.fixed_dictionaries(
        {},
        optional={
            "members": st.dictionaries(personas, _SUBJECTS, max_size=3),
            "drivers": st.dictionaries(
                st.sampled_from(("gpu.acme.example", "reader", "d" * 63)), _SUBJECTS, max_size=2
            ),
            **_COMMON,
        },
    )
    return Call("GpuRoles", draw(st.sampled_from(("gpus", "g" * 100))), draw(rest))


@st.composite
def guardrails(draw: st.DrawFn) -> Call:
    """Guardrails with any of the rules; without one they are a problem."""
    drivers = st.sampled_from(("gpu.nvidia.com", "gpu.acme.example"))
    rest = st.fixed_dictionaries(
        {},
        optional={
            "classes": st.dictionaries(
                _SPACES, st.lists(st.sampled_from(("h100", "mig.nvidia.com")), max_size=2), max_size=2
            ),
            "most_devices": st.integers(1, 32),
            "all_devices": st.booleans(),
            "admin_access": st.lists(_SPACES, max_size=2),
            "admin_label": _SUBJECTS,
            "config_drivers": st.lists(drivers, max_size=2),
            "without_device_plugin": st.lists(_SPACES, max_size=2),
            "host_paths": st.dictionaries(
                _SPACES,
                st.lists(st.sampled_from(("/mnt/datasets", '/mnt/it\'s "here"', "/dev")), max_size=2),
                max_size=2,
            ),
            "node_access": st.lists(_SPACES, max_size=1),
            "extended_resources": st.dictionaries(
                st.just("example.com/a100"), st.sampled_from(("a100", "h100")), max_size=1
            ),
            **_COMMON,
        },
    )
    return Call("GpuGuardrails", draw(st.sampled_from(("gpus", "g" * 100))), draw(rest))


@st.composite
def monitoring(draw: st.DrawFn) -> Call:
    """Alerts and a dashboard, with plugins or without."""
    alerts = st.sampled_from(("KubeDRAPrepareSlow", "KubeDRAPodsUnschedulable"))
    rest = st.fixed_dictionaries(
        {},
        optional={
            "namespace": st.sampled_from(("monitoring", Later("later"))),
            "selected_by": values.labels,
            "thresholds": st.dictionaries(alerts, st.sampled_from((0, 2.5, 1e9)), max_size=2),
            "severities": st.dictionaries(alerts, st.sampled_from(("critical", "info")), max_size=2),
            "without": st.lists(alerts, max_size=2),
            "jobs": st.dictionaries(st.just("kubelet"), st.sampled_from(("kubelet", "a/b:c")), max_size=1),
            "runbooks": st.just("https://wiki.example.com/gpus"),
            "plugin_namespaces": st.lists(_SPACES, max_size=2, unique=True),
            "plugin_port": st.integers(1, 65535),
            "dashboard": values.labels,
            **_COMMON,
        },
    )
    return Call("GpuMonitoring", draw(st.sampled_from(("gpus", "g" * 50))), draw(rest))


@st.composite
def queues(draw: st.DrawFn) -> Call:
    """Queues with devices and other resources; without amounts or namespaces they are a problem."""
    rest = st.fixed_dictionaries(
        {
            "quota": st.dictionaries(
                st.sampled_from(("h100", "mig.nvidia.com")), st.integers(0, 64), max_size=2
            ),
            "namespaces": st.lists(
                st.one_of(_SPACES, st.just(Later("later"))), min_size=1, max_size=2, unique_by=str
            ),
        },
        optional={
            "resources": st.dictionaries(
                st.sampled_from(("cpu", "memory", "example.com/m")),
                st.sampled_from(("64", 8, Later("8Ti"))),
                max_size=2,
            ),
            "sources": st.dictionaries(
                st.sampled_from(("memory", "example.com/m")),
                st.builds(
                    dra.CounterSource,
                    st.sampled_from(("memory", "memory-slice-0", "mem.ory")),
                    device_classes=st.lists(st.sampled_from(("mig.nvidia.com", "mig-small")), max_size=2),
                ),
                max_size=2,
            ),
            "node_labels": values.labels,
            "cohort": st.just("all"),
            "strategy": st.sampled_from(("StrictFIFO", "BestEffortFIFO")),
            **_COMMON,
        },
    )
    return Call("KueueQueue", draw(st.sampled_from(("gpus", "g" * 100))), draw(rest))


@st.composite
def taints(draw: st.DrawFn) -> Call:
    """Taints of devices; without a minor, or with no device that is meant, they are a problem."""
    rest = st.fixed_dictionaries(
        {"key": st.just("example.com/service"), "pool": st.sampled_from(("node-7", "rack/a"))},
        optional={
            "value": st.sampled_from(("", "INC-1")),
            "effect": st.sampled_from(("NoSchedule", "NoExecute")),
            "driver": st.just("gpu.nvidia.com"),
            "device": st.just("gpu-3"),
            **_COMMON,
        },
    )
    return Call("DeviceTaint", draw(st.sampled_from(("service", "s" * 100))), draw(rest))
