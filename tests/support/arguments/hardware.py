"""Partitions of GPUs, groups of them, and shares."""

from __future__ import annotations

from hypothesis import strategies as st

from dra_infra.catalog.gpus import systems
from tests.support.arguments import values
from tests.support.arguments.calls import Call
from tests.support.arguments.claims import class_names, common
from tests.support.arguments.configs import configs, mps, slices

_PROFILES = st.sampled_from(
    ("1g.10gb", "1g.5gb", "1g.10gb+me", "3g.40gb", "2g.20gb", "7g.80gb", "1g.23gb", "1g.6gb")
)
_MODELS = st.sampled_from(("H100", "A100-80GB", "A100-40GB", "A30", "B200", "GB200", "NVIDIA H100 80GB HBM3"))
_names = values.names


@st.composite
def mig_partitions(draw: st.DrawFn) -> Call:
    """A wish for MIG devices."""
    wish = draw(
        st.one_of(
            st.fixed_dictionaries({"profile": _PROFILES}, optional={"count": st.integers(1, 8)}),
            st.fixed_dictionaries(
                {
                    "profiles": st.lists(_PROFILES, min_size=1, max_size=4)
                    | st.dictionaries(_PROFILES, st.integers(1, 7), min_size=1, max_size=3)
                    | st.dictionaries(_names, _PROFILES, min_size=1, max_size=3)
                }
            ),
            st.fixed_dictionaries(
                {},
                optional={
                    "memory": st.sampled_from(("5Gi", "9.5Gi", "20Gi", "70Gi")),
                    "compute": st.integers(1, 7),
                },
            ),
        )
    )
    rest = st.fixed_dictionaries(
        {},
        optional={
            "gpu": _MODELS,
            "same_gpu": st.booleans(),
            "dynamic": st.sampled_from((None, True, False)),
            "device_class": st.sampled_from(("mig.nvidia.com", "own-mig")),
            "select": values.selectors,
            "tolerations": st.lists(values.tolerations, max_size=2),
            "configs": configs(("mig",)),
            "shared": st.booleans(),
            **common(),
        },
    )
    return Call("MigPartition", draw(_names), {**wish, **draw(rest)})


@st.composite
def nvlink_groups(draw: st.DrawFn) -> Call:
    """A group of GPUs, of a board, a partition or a rack."""
    gpus = st.sampled_from((1, 2, 4, 8, 16, 36, 72)) | st.integers(1, 72)
    rest = st.fixed_dictionaries(
        {"gpus": gpus},
        optional={
            "on": st.sampled_from(sorted(systems())) | st.sampled_from(("gb200-nvl72", "hgx-h100")),
            "gpu": _MODELS,
            "gpus_per_pod": st.sampled_from((1, 2, 4, 8)),
            "device_class": class_names,
            "select": values.selectors,
            "tolerations": st.lists(values.tolerations, max_size=2),
            "allocation_mode": st.sampled_from((None, "Single", "All")),
            "imex_mode": st.sampled_from((None, "driverManaged", "hostManaged")),
            **common(),
        },
    )
    racks = st.fixed_dictionaries(
        {"gpus": st.sampled_from((8, 16, 36, 72)), "on": st.sampled_from(("gb200-nvl72", "gb300-nvl72"))},
        optional=common(),
    )
    return Call("NvlinkGroup", draw(_names), draw(rest | racks))


@st.composite
def shared_gpus(draw: st.DrawFn) -> Call:
    """A GPU for several."""
    rest = st.fixed_dictionaries(
        {},
        optional={
            "device_class": class_names,
            "select": values.selectors,
            "across": st.sampled_from(("containers", "pods")),
            "consumers": st.sampled_from((1, 2, 256)),
            "sharing": slices | mps,
            "memory": st.sampled_from(("20Gi", "1Gi")),
            "shares": st.sampled_from((1, 2, 10)),
            **common(),
        },
    )
    return Call("SharedGpu", draw(_names), draw(rest))
