"""Installations: what they make beside the release of a chart are Namespaces, and CRDs that the user points at."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dra_infra.catalog.charts import charts
from tests.support.arguments import values
from tests.support.arguments.calls import Call

_INSTALLATION: dict[str, st.SearchStrategy[Any]] = {
    "namespace": st.sampled_from(("gpu-operator", "nvidia", "n" * 63)),
    "release_name": st.sampled_from(("gpus", "r" * 53)),
    "create_namespace": st.booleans(),
    "namespace_labels": values.labels,
    "skip_await": st.booleans(),
    "timeout": st.sampled_from((30, 600)),
    "values": st.sampled_from(({}, {"nodeSelector": {"a": "b"}}, {"logVerbosity": 4})),
}
_DRIVER = {
    **_INSTALLATION,
    "version": st.sampled_from(
        (*charts()["nvidia-dra-driver-gpu"].versions, *charts()["dra-driver-nvidia-gpu"].versions)
    ),
    "gpus": st.booleans(),
    "compute_domains": st.booleans(),
    "gpu_resources_enabled_override": st.just(True),
    "gates": values.driver_gates(),
    "allow_default_namespace": st.booleans(),
    "plugin_node_selector": values.labels,
}
_OPERATOR = {
    **_INSTALLATION,
    "version": st.sampled_from(tuple(charts()["gpu-operator"].versions)),
    "device_plugin": st.booleans(),
    "driver": st.booleans(),
    "gpu_cluster": st.booleans(),
    "dcgm_claims": st.booleans(),
    "mig_strategy": st.sampled_from(("none", "single", "mixed")),
}
_EXAMPLE = {
    **_INSTALLATION,
    "version": st.sampled_from(tuple(charts()["dra-example-driver"].versions)),
    "profile": st.sampled_from(("gpu", "cpu", "net")),
    "devices_per_node": st.integers(1, 16),
}
_NODE_PLUGIN = {
    "fleet": st.sampled_from(("example", "hgx-h100", "a100-80gb mig=1g.10gb*7", "hgx-h100 x 2")),
    "driver": st.sampled_from(("gpu.example.com", "gpu.acme.example")),
    "namespace": st.sampled_from(("dra-infra-plugin", "kube-system", "n" * 63)),
    "create_namespace": st.booleans(),
    "labels": values.labels,
    "node_selector": values.labels,
    "tolerations": st.sampled_from(([], [{"operator": "Exists"}])),
    "log_level": st.sampled_from(("debug", "info")),
    "kubelet_root": st.sampled_from(("/var/lib/kubelet", "/var/lib/k0s/kubelet")),
    "metrics_port": st.integers(1024, 65535),
    "metrics_namespaces": st.sampled_from(([], ["monitoring"])),
    "settings": st.sampled_from(({}, {"mig_delay": "2s"})),
    "env": st.sampled_from(({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})),
    "host_network": st.booleans(),
    "classes": st.booleans(),
    "binding_conditions": st.booleans(),
}


def _arguments(optional: dict[str, st.SearchStrategy[Any]], **more: st.SearchStrategy[Any]) -> Any:
    return st.fixed_dictionaries({}, optional={**optional, **more})


def _one(kind: str, optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Call]:
    return st.builds(Call, st.just(kind), values.names, _arguments(optional, target=values.targets()))


def _part(optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return st.sampled_from((None, True)) | _arguments(optional)


def platforms() -> st.SearchStrategy[Call]:
    """A chart by itself, or a platform of several."""
    whole = st.fixed_dictionaries(
        {},
        optional={
            "platform": st.sampled_from(("aks", "gke", "eks", "kubeadm", "kind", "openshift")),
            "driver": _part(_DRIVER),
            "operator": _part(_OPERATOR),
            "example": _part(_EXAMPLE),
            "node_plugin": st.sampled_from((None, "sim", "nvml"))
            | _arguments(_NODE_PLUGIN, back_end=st.sampled_from(("sim", "nvml"))),
            "gpu_pools": st.sampled_from((None, {"a": {"pool": "gpu"}})),
            "target": values.targets(),
        },
    )
    return st.one_of(
        _one("DraDriver", _DRIVER),
        _one("GpuOperator", _OPERATOR),
        _one("ExampleDriver", _EXAMPLE),
        st.builds(
            Call,
            st.just("NodePlugin"),
            values.names,
            st.fixed_dictionaries(
                {"back_end": st.sampled_from(("sim", "nvml"))},
                optional={**_NODE_PLUGIN, "target": values.targets()},
            ),
        ),
        st.builds(Call, st.just("GpuPlatform"), values.names, whole),
    )
