"""What makes each alert fire and what does not, as series of samples, one a minute."""

from __future__ import annotations

from dataclasses import dataclass

from dra_infra.specs.metrics import metrics
from dra_infra.target import Release

Series = tuple[str, str, str]
"""Key of the metric with the suffix of a histogram's part, labels, and values as promtool writes them."""

MINUTES = 40


@dataclass(frozen=True, kw_only=True)
class Case:
    """Samples of an alert.

    Args:
        fires: With these it fires.
        labels: That it then has, beside its severity.
        description: That it then has.
        silent: Samples of a cluster with which nothing is wrong, or not for long enough, each by what it shows.
    """

    fires: tuple[Series, ...]
    labels: dict[str, str]
    description: str
    silent: dict[str, tuple[Series, ...]]


def steady(value: int) -> str:
    return f"{value}x{MINUTES}"


def growing(step: int) -> str:
    return f"0+{step}x{MINUTES}"


def buckets(upto: dict[str, int]) -> tuple[Series, ...]:
    """Prepared claims each minute, by the bucket's limit."""
    labels = 'operation_name="PrepareResources", is_error="false", instance="n1"'
    return tuple(
        ("node_operations_bucket", f'{labels}, le="{limit}"', growing(step)) for limit, step in upto.items()
    )


AT_NODE = {"instance": "n1"}
AT_POD = {"pod": "plugin-1", "job": "dra-infra-plugin"}
_POD = 'pod="plugin-1"'

CASES = {
    "KubeDRAPodsUnschedulable": Case(
        fires=(
            ("unschedulable", 'plugin="DynamicResources", profile="default-scheduler"', steady(2)),
            ("unschedulable", 'plugin="DynamicResources", profile="batch"', steady(1)),
        ),
        labels={},
        description="3 pods have waited for devices for more than 15 minutes.",
        silent={
            "no pod waits": (("unschedulable", 'plugin="DynamicResources"', steady(0)),),
            "pods wait for CPU": (("unschedulable", 'plugin="NodeResourcesFit"', steady(5)),),
            "they waited for ten minutes": (
                ("unschedulable", 'plugin="DynamicResources"', "0x20 1x10 0x10"),
            ),
        },
    ),
    "KubeDRAClaimCreationFailing": Case(
        fires=(("claims_made", 'status="failure", admin_access="false"', growing(1)),),
        labels={},
        description="15 ResourceClaims could not be created for pods in the last 15 minutes.",
        silent={
            "all are made": (("claims_made", 'status="success", admin_access="false"', growing(9)),),
            "failures of long ago": (("claims_made", 'status="failure", admin_access="false"', steady(7)),),
        },
    ),
    "KubeDRAClaimQueueLong": Case(
        fires=(("claim_queue", 'name="resource_claim", instance="m1"', steady(101)),),
        labels={"instance": "m1"},
        description="101 claims and pods wait in the queue of kube-controller-manager at m1.",
        silent={
            "just as many": (("claim_queue", 'name="resource_claim", instance="m1"', steady(100)),),
            "another queue": (("claim_queue", 'name="garbage_collector", instance="m1"', steady(1000)),),
        },
    ),
    "KubeDRADevicesEvicting": Case(
        fires=(("evictions", 'instance="m1"', growing(2)),),
        labels={},
        description="30 pods were evicted from devices in the last 15 minutes.",
        silent={"none was": (("evictions", 'instance="m1"', steady(0)),)},
    ),
    "KubeDRABindingFailing": Case(
        fires=(
            ("bindings", 'driver="gpu.acme.example", status="timeout", profile="p"', growing(1)),
            ("bindings", 'driver="gpu.acme.example", status="error", profile="p"', growing(1)),
        ),
        labels={"driver": "gpu.acme.example"},
        description="30 allocations of driver gpu.acme.example failed or ran out of time in the last 15 minutes.",
        silent={"all succeed": (("bindings", 'driver="gpu.acme.example", status="success"', growing(4)),)},
    ),
    "KubeDRAPrepareFailing": Case(
        fires=(
            (
                "node_operations_count",
                'operation_name="PrepareResources", is_error="true", instance="n1"',
                growing(1),
            ),
        ),
        labels=AT_NODE,
        description="15 operations failed on n1 in the last 15 minutes.",
        silent={
            "all succeed": (
                (
                    "node_operations_count",
                    'operation_name="PrepareResources", is_error="false", instance="n1"',
                    growing(9),
                ),
            )
        },
    ),
    "KubeDRAPrepareSlow": Case(
        fires=buckets({"5": 0, "10": 0, "20": 4, "+Inf": 4}),
        labels=AT_NODE,
        description="99 of 100 times devices are prepared in up to 19.9s on n1.",
        silent={
            "half a second": buckets({"0.5": 4, "1": 4, "+Inf": 4}),
            "nothing is prepared": buckets({"10": 0, "20": 0, "+Inf": 0}),
        },
    ),
    "KubeDRADriverCallsFailing": Case(
        fires=(
            (
                "driver_calls_count",
                'driver_name="gpu.nvidia.com", method_name="M", grpc_status_code="Unavailable", instance="n1"',
                growing(1),
            ),
        ),
        labels={**AT_NODE, "driver_name": "gpu.nvidia.com"},
        description="15 calls of driver gpu.nvidia.com failed on n1 in the last 15 minutes.",
        silent={
            "all are answered": (
                (
                    "driver_calls_count",
                    'driver_name="gpu.nvidia.com", grpc_status_code="OK", instance="n1"',
                    growing(3),
                ),
            )
        },
    ),
    "KubeDRAMetricsMissing": Case(
        fires=(("unschedulable", 'plugin="DynamicResources"', steady(0)),),
        labels={"job": "kube-controller-manager"},
        description="Prometheus has no metrics of ResourceClaims from kube-controller-manager, so other alerts on devices stay silent.",
        silent={"they are there": (("claims", 'allocated="true", admin_access="false"', steady(0)),)},
    ),
    "DraInfraPluginMissing": Case(
        fires=(("claims", 'allocated="true", admin_access="false"', steady(0)),),
        labels={"job": "dra-infra-plugin"},
        description="Prometheus has no metrics of any dra-infra node plugin, so the alerts on it stay silent.",
        silent={"one is there": (("plugin_info", f'{_POD}, driver="gpu.nvidia.com"', steady(1)),)},
    ),
    "DraInfraPluginNotRegistered": Case(
        fires=(("plugin_registered", _POD, steady(0)),),
        labels={**AT_POD},
        description="The kubelet does not know the node plugin of plugin-1, so no pod with its devices starts there.",
        silent={
            "it is": (("plugin_registered", _POD, steady(1)),),
            "it has just started": (("plugin_registered", _POD, "1x27 0x3 1x10"),),
        },
    ),
    "DraInfraPluginNotPublished": Case(
        fires=(("plugin_published", _POD, steady(0)),),
        labels={**AT_POD},
        description="The ResourceSlices of the node of plugin-1 are not as its devices are.",
        silent={"they are": (("plugin_published", _POD, steady(1)),)},
    ),
    "DraInfraPluginClaimsUnreadable": Case(
        fires=(("plugin_claims", f'{_POD}, state="unreadable"', steady(2)),),
        labels={**AT_POD, "state": "unreadable"},
        description="2 records of prepared claims cannot be read at plugin-1.",
        silent={
            "all can be": (
                ("plugin_claims", f'{_POD}, state="unreadable"', steady(0)),
                ("plugin_claims", f'{_POD}, state="prepared"', steady(4)),
            )
        },
    ),
    "DraInfraPluginDevicesUnhealthy": Case(
        fires=(("plugin_devices", f'{_POD}, state="unhealthy"', steady(1)),),
        labels={**AT_POD, "state": "unhealthy"},
        description="1 devices of the node of plugin-1 are unhealthy.",
        silent={
            "all are healthy": (
                ("plugin_devices", f'{_POD}, state="unhealthy"', steady(0)),
                ("plugin_devices", f'{_POD}, state="healthy"', steady(8)),
            )
        },
    ),
    "DraInfraPluginOperationsFailing": Case(
        fires=(("plugin_failures", f'{_POD}, operation="prepare", code="claim-not-known"', growing(1)),),
        labels={"pod": "plugin-1", "code": "claim-not-known"},
        description="15 claims failed at plugin-1 with claim-not-known in the last 15 minutes.",
        silent={
            "one failed long ago": (
                ("plugin_failures", f'{_POD}, operation="prepare", code="claim-not-known"', steady(1)),
            )
        },
    ),
}
"""By alert. A new alert needs a case here."""


def to_input(series: tuple[Series, ...], release: Release) -> list[dict[str, str]]:
    """The samples as promtool reads them, under the names of the release and from the usual jobs."""
    return [
        {"series": f'{_name(key, release)}{{job="{_job(key)}", {labels}}}', "values": values}
        for key, labels, values in series
    ]


def _key(key: str) -> tuple[str, str]:
    for suffix in ("_bucket", "_count"):
        if key.endswith(suffix):
            return key.removesuffix(suffix), suffix
    return key, ""


def _name(key: str, release: Release) -> str:
    known, suffix = _key(key)
    return f"{metrics()[known].name_in(release)}{suffix}"


def _job(key: str) -> str:
    return metrics()[_key(key)[0]].exposed_by
