"""Pods and workloads as the server completes them before it asks policies: defaults, and what admission plugins write.

What is not known stays `NotKnown`: values that only come with the request, and those of objects that are not given.

Upstream: `pkg/apis/core/v1/defaults.go`, `pkg/apis/apps/v1/defaults.go`, `pkg/apis/batch/v1/defaults.go`, and the plugins
ServiceAccount, DefaultTolerationSeconds, Priority and RuntimeClass in `plugin/pkg/admission`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.placeholders import holds_placeholder, is_placeholder
from dra_infra.kubernetes.api.quantity import Quantity, quantity_text


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A value that only the server knows, with the reason."""

    reason: str


Data = Any
"""Plain JSON data with `NotKnown` in the place of values."""

_CHECKED_LATER: Final = "is written without a value, and whether the server keeps it is not known here"
_NOT_KNOWN: Final = "is not known here"

_KEPT: Final = frozenset(
    {
        "activeDeadlineSeconds", "allowPrivilegeEscalation", "automountServiceAccountToken", "backoffLimit",
        "backoffLimitPerIndex", "completions", "controller", "containerPort", "defaultMode", "deletionGracePeriodSeconds",
        "enableServiceLinks", "expirationSeconds", "failedJobsHistoryLimit", "fsGroup", "hostUsers", "manualSelector",
        "maxSkew", "maxUnavailable", "maxSurge", "minDomains", "mode", "optional", "parallelism", "partition", "path", "port", "priority",
        "privileged", "progressDeadlineSeconds", "readOnlyRootFilesystem", "replicas", "revisionHistoryLimit", "runAsGroup",
        "runAsNonRoot", "runAsUser", "seconds", "setHostnameAsFQDN", "shareProcessNamespace", "startingDeadlineSeconds",
        "successfulJobsHistoryLimit", "suspend", "terminationGracePeriodSeconds", "tolerationSeconds", "topologyKey",
        "ttlSecondsAfterFinished", "weight", "whenUnsatisfiable",
    }
)  # fmt: skip
"""Fields that Go holds by pointer or writes even when they are zero, so that a zero that is written stays."""
_DROPPED: Final = frozenset(
    {
        "effect", "hostIPC", "hostNetwork", "hostPID", "hostPort", "hostname", "imagePullPolicy", "initialDelaySeconds",
        "minReadySeconds", "nodeName", "operator", "paused", "priorityClassName", "readOnly", "restartPolicy", "schedulerName",
        "serviceAccount", "serviceAccountName", "stdin", "stdinOnce", "subdomain", "subPath", "tty", "value", "workingDir",
        "medium", "terminationMessagePath", "terminationMessagePolicy", "dnsPolicy", "protocol", "name", "image",
    }
)  # fmt: skip
"""Fields that Go leaves out when they are zero. The key of a toleration is one of them too."""
_MAPS: Final = frozenset(
    {
        "annotations",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "overhead",
        "requests",
        "volumeAttributes",
    }
)
"""Maps, which Go leaves out when they are empty; other objects are pointers to structs, which stay."""
_AMOUNTS: Final = frozenset({"limits", "overhead", "requests"})
_QUANTITIES: Final = frozenset({"divisor", "sizeLimit"})


def prune(data: Any, name: str = "") -> Data:
    """Return what the server writes of a value: without what Go leaves out, and with amounts in one spelling."""
    if isinstance(data, Mapping):
        if name in _AMOUNTS:
            return {str(key): _amount(value) for key, value in data.items()}
        pruned = {str(key): prune(value, str(key)) for key, value in data.items() if value is not None}
        return {key: value for key, value in pruned.items() if not _is_left_out(key, value)}
    if isinstance(data, list):
        return [prune(item) for item in data]
    if is_placeholder(data) or holds_placeholder(data):
        return NotKnown(f"{name} {_NOT_KNOWN}")
    if name in _QUANTITIES:
        return _amount(data)
    if not data and data is not None and name not in _KEPT and name not in _DROPPED:
        return NotKnown(f"{name} {_CHECKED_LATER}")
    return data


def _is_left_out(name: str, value: Data) -> bool:
    if isinstance(value, list):
        return not value
    if isinstance(value, Mapping):
        return not value and name in _MAPS
    return not isinstance(value, NotKnown) and not value and name in _DROPPED


def _amount(value: Any) -> Data:
    text = quantity_text(value)
    try:
        if text is None or is_placeholder(text):
            return NotKnown("an amount that is not known here")
        return Quantity.parse(text).canonical()
    except ValueError:
        return NotKnown("an amount that the server does not read")


def complete_pod_spec(written: Mapping[str, Any], *, is_pod: bool) -> dict[str, Data]:
    """Return a pod spec with its defaults.

    Args:
        written: The pod spec as it is written.
        is_pod: Whether it is that of a pod, of which the server completes more than of a template.
    """
    spec: dict[str, Data] = {
        name: each
        if _is_shaped(name, written.get(name))
        else NotKnown(f"{name} is not what the server reads")
        for name, each in prune(written).items()
    }
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec |= {"serviceAccountName": account, "serviceAccount": account}
    _default(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        securityContext={},
        terminationGracePeriodSeconds=30,
        schedulerName="default-scheduler",
    )
    if "resources" in spec:
        spec["resources"] = NotKnown("resources of a pod as a whole are completed by the server")
    for kind in ("containers", "initContainers"):
        if isinstance(spec.get(kind), list):
            spec[kind] = [_complete_container(each, spec, is_pod=is_pod) for each in spec[kind]]
    if isinstance(spec.get("volumes"), list):
        spec["volumes"] = [_complete_volume(each) for each in spec["volumes"]]
    return spec


def _is_shaped(name: str, value: Any) -> bool:
    """True unless a list of objects, or a text, is something else, which the server does not decode."""
    if name in ("containers", "initContainers", "volumes"):
        return isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
    return name != "nodeName" or isinstance(value, str)


def complete_pod(written: Mapping[str, Any], *, has_token: bool) -> dict[str, Data]:
    """Return the spec of a pod as admission plugins of a cluster with default settings complete it.

    Args:
        written: The pod spec as it is written, with what LimitRanges fill in.
        has_token: Whether a volume with a token of its account is added.
    """
    spec = complete_pod_spec(written, is_pod=True)
    _default(spec, enableServiceLinks=True, serviceAccountName="default", serviceAccount="default")
    secrets = "imagePullSecrets may come from the service account, which is not given"
    _default(spec, imagePullSecrets=NotKnown(secrets))
    _complete_priority(spec)
    tolerations = spec.get("tolerations", [])
    if isinstance(tolerations, list):
        spec["tolerations"] = [*tolerations, *_list_added_tolerations(tolerations)]
    if "runtimeClassName" in spec:
        why = "may come from the RuntimeClass, which is not given"
        spec |= {name: NotKnown(f"{name} {why}") for name in ("overhead", "tolerations", "nodeSelector")}
    if has_token:
        _add_token(spec)
    return spec


def _add_token(spec: dict[str, Data]) -> None:
    """Add the volume with a token, and its mounts, as the plugin ServiceAccount does."""
    name = NotKnown("the name of the volume with the token is made up by the server")
    volume = {"name": name, "projected": {"defaultMode": 420, "sources": _not_whole("sources")}}
    volumes = spec.get("volumes", [])
    if isinstance(volumes, list):
        spec["volumes"] = [*volumes, volume]
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            mounts = container.get("volumeMounts", [])
            if not any(mapping(each).get("mountPath") == _TOKENS for each in mounts):
                container["volumeMounts"] = [*mounts, {"name": name, "mountPath": _TOKENS, "readOnly": True}]


_TOKENS: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _complete_priority(spec: dict[str, Data]) -> None:
    name = spec.get("priorityClassName")
    why = (
        "comes from the PriorityClass, which is not given"
        if name
        else "may come from a PriorityClass for all pods"
    )
    known = _SYSTEM_CLASSES.get(name) if isinstance(name, str) else None
    _default(spec, priorityClassName=NotKnown(f"priorityClassName {why}"))
    _default(
        spec,
        priority=NotKnown(f"priority {why}") if known is None else known,
        preemptionPolicy=NotKnown(f"preemptionPolicy {why}") if known is None else "PreemptLowerPriority",
    )


def _list_added_tolerations(tolerations: list[Data]) -> list[Data]:
    """List the tolerations that DefaultTolerationSeconds adds."""
    added = []
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        is_tolerated = any(
            each.get("key", "") in ("", key) and each.get("effect", "") in ("", "NoExecute")
            for each in mappings(tolerations)
        )
        if not is_tolerated:
            added.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    return added


def _complete_container(container: Data, spec: Mapping[str, Data], *, is_pod: bool) -> Data:
    if not isinstance(container, Mapping):
        return container
    found: dict[str, Data] = dict(container)
    _default(
        found,
        imagePullPolicy=_pull_policy(found.get("image", "")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    resources: dict[str, Data] = dict(mapping(found["resources"]))
    if is_pod and "limits" in resources:
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    found["resources"] = resources
    if isinstance(found.get("ports"), list):
        found["ports"] = [_complete_port(each, spec, is_pod=is_pod) for each in found["ports"]]
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(found.get(name), Mapping):
            probe = dict(found[name])
            _default(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            found[name] = _complete_handler(probe)
    if "lifecycle" in found:
        found["lifecycle"] = {
            name: _complete_handler(each) if isinstance(each, Mapping) else each
            for name, each in mapping(found["lifecycle"]).items()
        }
    if isinstance(found.get("env"), list):
        found["env"] = [_complete_source(each) for each in found["env"]]
    return found


def _pull_policy(image: Data) -> Data:
    """`Always` for the tag `latest`, also where no tag and no digest is written (SetDefaults_Container)."""
    if not isinstance(image, str):
        return NotKnown("imagePullPolicy depends on the image, which is not known here")
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _complete_port(port: Data, spec: Mapping[str, Data], *, is_pod: bool) -> Data:
    if not isinstance(port, Mapping):
        return port
    completed = dict(port)
    _default(completed, protocol="TCP")
    if is_pod and spec.get("hostNetwork") is True and "containerPort" in completed:
        _default(completed, hostPort=completed["containerPort"])
    return completed


def _complete_handler(handler: Mapping[str, Data]) -> Data:
    completed = dict(handler)
    if isinstance(completed.get("httpGet"), Mapping):
        action = {**completed["httpGet"]}
        _default(
            action,
            path="/",
            scheme="HTTP",
            protocol=NotKnown("protocol depends on a feature gate of the server"),
        )
        completed["httpGet"] = action
    if isinstance(completed.get("grpc"), Mapping):
        completed["grpc"] = {"service": "", **completed["grpc"]}
    return completed


def _complete_source(variable: Data) -> Data:
    source = dict(mapping(mapping(variable).get("valueFrom")))
    for name, defaults in (("fieldRef", {"apiVersion": "v1"}), ("resourceFieldRef", {"divisor": "0"})):
        if isinstance(source.get(name), Mapping):
            source[name] = {**defaults, **source[name]}
    return {**variable, "valueFrom": source} if source else variable


_MODES: Final = frozenset({"configMap", "downwardAPI", "projected", "secret"})
_WHOLE_VOLUMES: Final = _MODES | {"emptyDir", "hostPath", "nfs", "persistentVolumeClaim", "csi"}


def _complete_volume(volume: Data) -> Data:
    """Return a volume with its defaults; of kinds with more of them not all is known."""
    if not isinstance(volume, Mapping):
        return volume
    completed = dict(volume)
    kinds = [name for name in completed if name != "name"]
    if not kinds:
        return {**completed, "emptyDir": {}}
    for kind in kinds:
        source = completed[kind]
        if not isinstance(source, Mapping):
            continue
        if kind == "hostPath":
            completed[kind] = {"type": "", **source}
        elif kind in ("configMap", "secret"):
            completed[kind] = {"defaultMode": 420, **source}
        elif kind in _MODES:
            completed[kind] = {
                "defaultMode": 420,
                **{name: _not_whole(name) for name in ("items", "sources") if name in source},
            }
        elif kind not in _WHOLE_VOLUMES:
            completed[kind] = _not_whole(kind)
    return completed


def _not_whole(name: str) -> NotKnown:
    return NotKnown(f"{name} of a volume is not known before the server has completed it")


def list_unknown_fields(kind: str, spec: Mapping[str, Any]) -> dict[str, NotKnown] | None:
    """List the fields of a pod that its controller writes, by the kind of the controller; None where it may write any.

    Args:
        kind: The kind of the object with the pod template.
        spec: The spec of that object.
    """
    names: tuple[str, ...] | None = {
        "Deployment": (),
        "ReplicaSet": (),
        "CronJob": (),
        "Job": (),
        "StatefulSet": ("hostname", "subdomain", "volumes"),
        "DaemonSet": ("affinity",),
    }.get(kind)
    if kind in ("Job", "CronJob") and "Indexed" in str(spec):
        names = ("hostname", "subdomain", "containers", "initContainers")
    if names is None:
        return None
    return {
        name: NotKnown(f"{name} of a pod may be written by the controller of its {kind}") for name in names
    }


_TOLERATED_BY_DAEMONS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def add_daemon_tolerations(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of a DaemonSet's pod with the tolerations that its controller adds.

    Upstream: AddOrUpdateDaemonPodTolerations in `pkg/controller/daemon/util/daemonset_util.go`.
    """
    tolerations = spec.get("tolerations") or []
    if holds_placeholder(tolerations) or not isinstance(tolerations, list):
        return spec
    added: tuple[tuple[str, str], ...] = _TOLERATED_BY_DAEMONS
    if spec.get("hostNetwork"):
        added = (*added, ("network-unavailable", "NoSchedule"))
    for name, effect in added:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        matching = [
            mapping(each).get("value") in (None, "") and _tests(each) == _tests(toleration)
            for each in tolerations
        ]
        if any(matching):
            pairs = zip(tolerations, matching, strict=True)
            tolerations = [toleration if matches else each for each, matches in pairs]
        else:
            tolerations = [*tolerations, toleration]
    return {**spec, "tolerations": tolerations}


def _tests(toleration: Any) -> list[str]:
    return [str(mapping(toleration).get(name) or "") for name in ("key", "operator", "effect")]


def complete_workload(manifest: Mapping[str, Any]) -> dict[str, Data] | None:
    """Return the spec of a workload of Kubernetes with its defaults; None for other kinds."""
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    complete = _WORKLOADS.get((group, str(manifest.get("kind"))))
    if complete is None:
        return None
    spec: dict[str, Data] = prune(mapping(manifest.get("spec")))
    complete(spec, mapping(manifest.get("spec")))
    return spec


def _complete_template(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    template = mapping(written.get("template"))
    metadata = prune(mapping(template.get("metadata")))
    # Whether it is written as null depends on the release.
    created = NotKnown("creationTimestamp of a template is not known here")
    spec["template"] = {
        "metadata": {**metadata, "creationTimestamp": created},
        "spec": complete_pod_spec(mapping(template.get("spec")), is_pod=False),
    }


def _complete_deployment(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    _default(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _complete_strategy(spec, "strategy", {"maxUnavailable": "25%", "maxSurge": "25%"})
    _complete_template(spec, written)


def _complete_daemon_set(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    _default(spec, revisionHistoryLimit=10)
    _complete_strategy(spec, "updateStrategy", {"maxUnavailable": 1, "maxSurge": 0})
    _complete_template(spec, written)


def _complete_replica_set(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    _default(spec, replicas=1)
    _complete_template(spec, written)


def _complete_stateful_set(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    spec["persistentVolumeClaimRetentionPolicy"] = {
        **kept,
        **mapping(spec.get("persistentVolumeClaimRetentionPolicy")),
    }
    _default(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    gated = NotKnown("maxUnavailable depends on a feature gate of the server")
    if "type" in mapping(spec.get("updateStrategy")) and "rollingUpdate" not in spec["updateStrategy"]:
        pass
    else:
        _complete_strategy(spec, "updateStrategy", {"partition": 0, "maxUnavailable": gated})
    if "volumeClaimTemplates" in spec:
        spec["volumeClaimTemplates"] = NotKnown("volumeClaimTemplates are completed by the server")
    _complete_template(spec, written)


_JOB_LABELS: Final = "labels with the id of a Job are made up by the server"


def _complete_job(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    limit = 2**31 - 1 if "backoffLimitPerIndex" in spec else 6
    replaced = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    _default(
        spec,
        parallelism=1,
        backoffLimit=limit,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy=replaced,
        manualSelector=NotKnown("manualSelector depends on the release of the server"),
    )
    if "podFailurePolicy" in spec:
        spec["podFailurePolicy"] = NotKnown("podFailurePolicy is completed by the server")
    _complete_template(spec, written)
    if spec["manualSelector"] is not True:
        # The server selects by an id that it makes up.
        spec["selector"] = NotKnown("the selector of a Job is made up by the server")
        labels, made_up = list_job_labels({"spec": {**written, "manualSelector": None}})
        ids = {key: NotKnown(f"the value of label {key} is made up by the server") for key in made_up}
        spec["template"]["metadata"]["labels"] = {**labels, **ids} if labels else NotKnown(_JOB_LABELS)


def list_job_labels(manifest: Mapping[str, Any]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the labels of a Job without labels: those of its template, with what the server adds to them, and names of labels with an id.

    Upstream: SetDefaults_Job in `pkg/apis/batch/v1/defaults.go` gives the Job the map of its template, and generateSelector in
    `pkg/registry/batch/job/strategy.go` adds to it.
    """
    spec = mapping(manifest.get("spec"))
    written = mapping(mapping(mapping(spec.get("template")).get("metadata")).get("labels"))
    labels = {str(key): str(value) for key, value in written.items()}
    if not labels or spec.get("manualSelector") is True:
        return labels, frozenset()
    name = str(mapping(manifest.get("metadata")).get("name") or "")
    named = {"job-name", "batch.kubernetes.io/job-name"} - labels.keys()
    made_up = {"controller-uid", "batch.kubernetes.io/controller-uid"} - labels.keys()
    if not name:
        return labels, frozenset(named | made_up)
    return {**labels, **dict.fromkeys(named, name)}, frozenset(made_up)


def _complete_cron_job(spec: dict[str, Data], written: Mapping[str, Any]) -> None:
    _default(
        spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1
    )
    template = mapping(written.get("jobTemplate"))
    job: dict[str, Data] = prune(mapping(template.get("spec")))
    _complete_template(job, mapping(template.get("spec")))
    created = NotKnown("creationTimestamp of a template is not known here")
    metadata = {**prune(mapping(template.get("metadata"))), "creationTimestamp": created}
    spec["jobTemplate"] = {"metadata": metadata, "spec": job}


_WORKLOADS: Final[Mapping[tuple[str, str], Callable[[dict[str, Data], Mapping[str, Any]], None]]] = {
    ("apps", "Deployment"): _complete_deployment,
    ("apps", "DaemonSet"): _complete_daemon_set,
    ("apps", "ReplicaSet"): _complete_replica_set,
    ("apps", "StatefulSet"): _complete_stateful_set,
    ("batch", "Job"): _complete_job,
    ("batch", "CronJob"): _complete_cron_job,
}


def _complete_strategy(spec: dict[str, Data], name: str, rolling: Mapping[str, Data]) -> None:
    strategy = dict(mapping(spec.get(name)))
    _default(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**rolling, **mapping(strategy.get("rollingUpdate"))}
    spec[name] = strategy


def _default(data: dict[str, Data], **values: Data) -> None:
    """Set the values that are not there."""
    for name, value in values.items():
        data.setdefault(name, value)
