"""Typed and opaque configs of devices."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import dra_infra as dra
from tests.support.arguments.calls import Later

slices = st.builds(dra.TimeSlicing, interval=st.sampled_from(("Default", "Short", "Medium", "Long")))
mps = st.builds(
    dra.Mps,
    active_thread_percentage=st.sampled_from((None, 0, 25, 100)),
    pinned_device_memory_limit=st.sampled_from((None, "10Gi", "1Mi")),
    per_device_pinned_memory_limit=st.sampled_from((None, {0: "4Gi"}, {"GPU-aa": "4Gi"})),
    multi_user=st.sampled_from((None, True, False)),
)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5) | st.just(Later("x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
opaque = st.builds(
    dra.OpaqueConfig,
    driver=st.sampled_from(("nic.example.com", "gpu.example.com", "a")),
    parameters=st.dictionaries(st.text(max_size=5), _JSON, max_size=3),
)
_channel = st.builds(
    dra.ComputeDomainChannelConfig,
    domain_id=st.just("0f6b4d0c-9a9e-4a54-9e4e-6a7b7a3a2f10")
    | st.builds(Later, st.just("0f6b4d0c-9a9e-4a54-9e4e-6a7b7a3a2f10"), st.booleans()),
    allocation_mode=st.sampled_from((None, "Single", "All")),
)
_example = st.builds(
    dra.ExampleGpuConfig,
    sharing=st.none() | slices | st.builds(dra.SpacePartitioning, partition_count=st.sampled_from((0, 1, 7))),
)


def configs(requests: tuple[str, ...] = ()) -> st.SearchStrategy[list[Any]]:
    """A few configs, each for some of *requests* or for all."""
    one = st.one_of(
        st.builds(dra.GpuConfig, sharing=st.none() | slices | mps),
        st.builds(dra.MigDeviceConfig, sharing=st.none() | mps),
        st.builds(
            dra.VfioDeviceConfig,
            backend_policy=st.sampled_from((None, "LegacyOnly", "PreferIommuFD")),
            enable_api_device=st.sampled_from((None, True)),
        ),
        _channel,
        _example,
        opaque,
        opaque,
    )
    if requests:
        # Every config is a dataclass with the field.
        named = st.lists(st.sampled_from(requests), max_size=2, unique=True)
        one = st.builds(_named, one, named)
    return st.just([]) | st.lists(one, max_size=2)


def _named(config: Any, names: list[str]) -> Any:
    from dataclasses import replace

    return replace(config, requests=names)
