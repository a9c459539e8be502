"""The plugin's DaemonSet, one pod per node with minimal privileges, and the devices that it has.

Its hardware is the back end, the fleet, the driver's name, and the classes that go with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dra_infra.catalog.drivers import ShippedClass, drivers
from dra_infra.catalog.fleet_terms import read_terms
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.errors import FleetError, Problem
from dra_infra.kubernetes.api import names
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import PLAIN_HINT, is_one_of, shorten, wrong_type

BACK_ENDS: Final = ("sim", "nvml")

DEFAULT_FLEET: Final = "example"
"""The fleet of a simulated plugin where none is named: pretended devices, which nobody takes for real ones."""

_NVIDIA: Final = "gpu.nvidia.com"
_PUBLISHED_BY_NVML: Final = ("gpu", "mig")


@dataclass(frozen=True)
class Hardware:
    """The devices of a node, as the plugin publishes them.

    Args:
        back_end: One of `BACK_ENDS`.
        fleet: As the plugin is told; empty for `nvml`.
        driver: Name of the driver in slices.
        is_named: Whether the user named the driver.
        classes: The DeviceClasses that the driver's chart would bring.
    """

    back_end: str
    fleet: str
    driver: str
    is_named: bool
    classes: tuple[ShippedClass, ...]


def choose_hardware(arguments: Mapping[str, Any]) -> tuple[Hardware | None, list[Problem]]:
    """The hardware, None where it is not known, and problems.

    Codes: `missing-argument`, `unsupported-value`, `wrong-type`, `invalid-name`, `field-not-allowed`, `fleet-unknown`,
    `fleet-count`, `fleet-option` and what else `read_terms` says of a fleet.
    """
    back_end, fleet, named = (arguments.get(name) for name in ("back_end", "fleet", "driver"))
    problems = [*_check_back_end(back_end), *_check_driver(named)]
    known, is_nvml = is_one_of(back_end, BACK_ENDS), is_one_of(back_end, ("nvml",))
    if is_nvml and fleet is not None:
        message, hint = "nvml has the GPUs of the node", 'leave it out, or write back_end="sim"'
        problems.append(Problem(path="fleet", code="field-not-allowed", message=message, hint=hint))
    group, wrong = (None, []) if is_nvml else _read_fleet(fleet)
    problems += wrong
    if problems or not known:
        return None, problems
    driver = named or (group.kind.driver if group else _NVIDIA)
    shipped = _shipped(group)
    if driver != (group.kind.driver if group else _NVIDIA):
        shipped = (ShippedClass(driver, f"device.driver == '{driver}'", "gpu"),)
    text = (fleet or DEFAULT_FLEET) if group else ""
    return Hardware(str(back_end), text, driver, bool(named), shipped), []


def _shipped(group: NodeGroup | None) -> tuple[ShippedClass, ...]:
    if group:
        return group.release.classes
    newest = drivers()[_NVIDIA].newest
    return tuple(each for each in newest.classes if each.selects in _PUBLISHED_BY_NVML)


def _read_fleet(fleet: object) -> tuple[NodeGroup | None, list[Problem]]:
    """The kind of node that the plugin makes of every node."""
    if fleet is None:
        fleet = DEFAULT_FLEET
    if not isinstance(fleet, str):
        return None, [wrong_type("fleet", fleet, "the name of a fleet", 'write fleet="hgx-h100"')]
    try:
        groups = read_terms(fleet)
    except FleetError as error:
        return None, [replace(each, path="fleet") for each in error.problems]
    if len(groups) > 1 or groups[0].count > 1:
        message = (
            f"{shorten(fleet)} is more than one node, and the plugin makes one of each node that it runs on"
        )
        hint = (
            "name one fleet without a count; for others write another NodePlugin with another node_selector"
        )
        return None, [Problem(path="fleet", code="fleet-count", message=message, hint=hint)]
    return groups[0], []


def _check_back_end(back_end: object) -> Iterator[Problem]:
    known = ", ".join(f'"{name}"' for name in BACK_ENDS)
    if back_end is None:
        hint = 'write back_end="sim" for pretended devices, "nvml" for real GPUs'
        message = "the back end is not named"
        yield Problem(path="back_end", code="missing-argument", message=message, hint=hint)
    elif not isinstance(back_end, str):
        yield wrong_type("back_end", back_end, f"one of {known}", PLAIN_HINT)
    elif back_end not in BACK_ENDS:
        near = nearest(back_end.lower(), BACK_ENDS)
        hint = f'did you mean "{near}"?' if near else f"known are {known}"
        message = f"{shorten(back_end)} is no back end"
        yield Problem(path="back_end", code="unsupported-value", message=message, hint=hint)


def _check_driver(driver: object) -> Iterator[Problem]:
    if driver is not None and not isinstance(driver, str):
        yield wrong_type("driver", driver, "the name of a driver", PLAIN_HINT)
    elif driver is not None and not names.is_driver_name(driver):
        message = f"{shorten(driver)} is not the name of a driver"
        hint = "use at most 63 lower-case letters, digits, '-' and '.', such as gpu.example.com"
        yield Problem(path="driver", code="invalid-name", message=message, hint=hint)


PREFIX: Final = "DRA_INFRA_PLUGIN_"
"""In front of the environment's names of settings."""

METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 51515
"""As the drivers of NVIDIA and Kubernetes have them; 51515 is that of `grpc.health.v1`."""

LIVENESS, READINESS = "liveness", "readiness"
"""Names of the plugin's services of `grpc.health.v1`."""

DRIVER_ROOT: Final = "/driver-root"
"""Where a container of `nvml` finds NVIDIA's kernel driver and libraries of the node."""

_RESOURCES: Final = {
    "requests": {"cpu": "10m", "memory": "64Mi"},
    # The plugin stays below 70 MB with a thousand prepared claims, and below 160 MiB whatever an API server answers: the second is
    # measured in tests/e2e/attacks/test_lying_api_server.py.
    "limits": {"memory": "256Mi"},
}
_TOLERATIONS: Final = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
_GRACE_SECONDS: Final = 30
_PROBE_SECONDS: Final = 10
_SCRATCH_SIZE: Final = "16Mi"


def spec(
    arguments: Mapping[str, Any], hardware: Hardware, *, name: str, image: Any, labels: Mapping[str, Any]
) -> dict[str, Any]:
    """The spec of the DaemonSet; *name* is that of the service account."""
    pod = {
        "serviceAccountName": name,
        "enableServiceLinks": False,
        "priorityClassName": arguments.get("priority_class_name", "system-node-critical"),
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "tolerations": list(arguments.get("tolerations", _TOLERATIONS)),
        "nodeSelector": arguments.get("node_selector"),
        "hostNetwork": arguments.get("host_network") or None,
        "dnsPolicy": "ClusterFirstWithHostNet" if arguments.get("host_network") else None,
        "imagePullSecrets": [{"name": each} for each in arguments.get("image_pull_secrets", ())] or None,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(arguments, hardware, image)],
        "volumes": [
            *(
                {"name": each.name, "hostPath": {"path": each.host, "type": each.type}}
                for each in _mounts(arguments, hardware)
            ),
            *({"name": name, "emptyDir": {"sizeLimit": _SCRATCH_SIZE}} for name in _scratch(hardware)),
        ],
    }
    annotations = arguments.get("annotations")
    return {
        "selector": {"matchLabels": selector(name)},
        "updateStrategy": {
            "type": "RollingUpdate",
            # The new one takes over before the old one goes: the kubelet knows both by the UIDs of their pods. Ports of
            # the node can be had only once, so with its network the old one goes first.
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}
            if arguments.get("host_network")
            else {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {
            "metadata": {"labels": dict(labels), **({"annotations": annotations} if annotations else {})},
            "spec": {key: value for key, value in pod.items() if value is not None},
        },
    }


def selector(name: str) -> dict[str, str]:
    """The labels by which the DaemonSet knows its pods; they can never change."""
    return {"app.kubernetes.io/name": "dra-infra-plugin", "app.kubernetes.io/instance": name}


class _Mount(NamedTuple):
    """A folder of the node, and its entry in `volumeMounts` of the container, which is told the paths of the kubelet."""

    name: str
    host: str
    type: str
    inside: Mapping[str, Any]


def _mounts(arguments: Mapping[str, Any], hardware: Hardware) -> list[_Mount]:
    kubelet = str(arguments.get("kubelet_root", "/var/lib/kubelet")).rstrip("/")
    own = {
        "registry": f"{kubelet}/plugins_registry",
        "state": f"{kubelet}/plugins/{hardware.driver}",
        "cdi": str(arguments.get("cdi_folder", "/var/run/cdi")),
    }
    found = [
        _Mount(name, host, "DirectoryOrCreate", {"name": name, "mountPath": host})
        for name, host in own.items()
    ]
    if hardware.back_end == "nvml":
        root = str(arguments.get("nvidia_driver_root", "/"))
        inside = {"name": "driver-root", "mountPath": DRIVER_ROOT, "readOnly": True}
        # What the operator mounts after the plugin started has to be seen.
        inside["mountPropagation"] = "HostToContainer"
        found.append(_Mount("driver-root", root, "Directory", inside))
    return found


def _scratch(hardware: Hardware) -> dict[str, str]:
    """Folders to write in beside the node's, by name: the root of the container is read-only.

    `nvidia-ctk cdi generate` writes each spec into a temporary file before it prints it (WriteTo in its pkg/nvcdi/spec).
    """
    return {"tmp": "/tmp"} if hardware.back_end == "nvml" else {}  # noqa: S108 - of the container, and its own


def _container(arguments: Mapping[str, Any], hardware: Hardware, image: Any) -> dict[str, Any]:
    metrics, health = arguments.get("metrics_port", METRICS_PORT), arguments.get("health_port", HEALTH_PORT)
    ports = [{"name": "metrics", "containerPort": metrics}, {"name": "health", "containerPort": health}]
    container = {
        "name": "plugin",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": _environment(arguments, hardware, metrics, health),
        # With the node's network each would be a port of the node, of which the scheduler keeps account.
        "ports": None if arguments.get("host_network") else ports,
        "securityContext": _security(hardware, openshift=arguments.get("openshift", False)),
        "resources": arguments.get("resources", _RESOURCES),
        # Fifty seconds to start: a node that boots has more to do.
        "startupProbe": _probe(health, LIVENESS, period=1, failures=50),
        "livenessProbe": _probe(health, LIVENESS, period=10, failures=3),
        # Soon ready, and not soon unready: nobody sends calls by it, but in a rolling update the DaemonSet's controller deletes
        # an older pod that is not ready at once, before the newer one is (podsShouldBeOnNode of pkg/controller/daemon). So it
        # has half a minute, or longer where probes run out of time; what does not answer at all is restarted for its liveness.
        "readinessProbe": _probe(health, READINESS, period=2, failures=15),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *({"name": name, "mountPath": place} for name, place in _scratch(hardware).items()),
            *(dict(each.inside) for each in _mounts(arguments, hardware)),
        ],
    }
    return {key: value for key, value in container.items() if value is not None}


def _environment(
    arguments: Mapping[str, Any], hardware: Hardware, metrics: Any, health: Any
) -> list[dict[str, Any]]:
    """Settings, in an order of their own; what `settings` and `env` say comes last and counts."""
    settings: dict[str, Any] = {
        "BACK_END": hardware.back_end,
        "FLEET": hardware.fleet or None,
        "DRIVER": hardware.driver,
        "KUBELET_ROOT": arguments.get("kubelet_root"),
        "CDI_FOLDER": arguments.get("cdi_folder"),
        "LOG_LEVEL": arguments.get("log_level"),
        "LOG_FORMAT": "json",
        "METRICS_ADDRESS": f":{metrics}",
        "HEALTH_ADDRESS": f":{health}",
        # CDI specs name files of the node, not of the container.
        "DRIVER_ROOT_ON_HOST": arguments.get("nvidia_driver_root", "/")
        if hardware.back_end == "nvml"
        else None,
    }
    settings |= {name.upper(): value for name, value in arguments.get("settings", {}).items()}
    values = {f"{PREFIX}{name}": value for name, value in settings.items() if value is not None}
    values |= {"NVIDIA_DRIVER_ROOT": DRIVER_ROOT} if hardware.back_end == "nvml" else {}
    values |= arguments.get("env", {})
    fields = {"NODE_NAME": "spec.nodeName", "POD_UID": "metadata.uid"}
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        *({"name": name, "value": value} for name, value in values.items()),
    ]


def _security(hardware: Hardware, *, openshift: bool) -> dict[str, Any]:
    """Root, since the kubelet's folders are root's; but a root that may nothing beside reading and writing its own.

    Of `nvml` the device nodes have to be opened, which a cgroup allows to privileged containers alone. SELinux, which OpenShift enforces,
    lets no other container write into the kubelet's folders: they are container_var_lib_t (containers/container-selinux, container.fc).
    """
    if hardware.back_end == "nvml":
        return {"privileged": True, "readOnlyRootFilesystem": True, "runAsUser": 0}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsGroup": 0,
        "runAsUser": 0,
        **({"seLinuxOptions": {"type": "spc_t"}} if openshift else {}),
    }


def _probe(port: Any, service: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "grpc": {"port": port, "service": service},
        "periodSeconds": period,
        "failureThreshold": failures,
        # As NVIDIA's chart has it: a plugin whose node is busy is slow, and to end it would help nobody.
        "timeoutSeconds": _PROBE_SECONDS,
    }
