"""Single values: what people mean to write, and what they should not have."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS
from dra_infra.target import ClusterTarget, check_target
from tests.support.arguments.calls import Later

NVIDIA = "gpu.nvidia.com"
LINES = tuple(drivers()[NVIDIA].by_line)

names = st.sampled_from(("trainer", "a", "0", "gpu-1", "n" * 63, "x-" * 31 + "x")) | st.from_regex(
    r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True
)
object_names = (
    names
    | st.sampled_from(("a.b.c", "h100.acme.example", "y" * 253))
    | st.builds(Later, names, st.booleans())
)
namespaces = st.sampled_from(("ml", "default", "n" * 63)) | st.builds(Later, st.just("ml"), st.booleans())
counts = st.sampled_from((1, 1, 1, 2, 4, 8, 32, "all"))
lines = st.sampled_from((*LINES, "newest"))
_KEYS = ("team", "acme.example/team", "a" * 63, f"{'b' * 253}/{'c' * 63}")
labels = st.dictionaries(
    st.sampled_from(_KEYS),
    st.sampled_from(("", "ml", "v" * 63)) | st.just(Later("v", known=False)),
    max_size=3,
)
annotations = st.dictionaries(st.sampled_from(_KEYS), st.text(max_size=20), max_size=3)


@st.composite
def targets(draw: st.DrawFn) -> ClusterTarget:
    """A cluster that can be: a minor or none, and gates that its server starts with."""
    minor = draw(st.sampled_from((*SUPPORTED_MINORS, None)))
    gates = draw(st.dictionaries(st.sampled_from(sorted(GATES)), st.booleans(), max_size=3))
    target = ClusterTarget(kubernetes=minor, gates=gates)
    return ClusterTarget(kubernetes=minor) if check_target(target) else target


@st.composite
def driver_gates(draw: st.DrawFn) -> dict[str, bool] | None:
    """Gates of NVIDIA's driver, of any release: what the one that is asked for lacks is told."""
    known = gates_of(draw(st.sampled_from(LINES)))
    return (
        draw(st.none() | st.dictionaries(st.sampled_from(sorted(known)), st.booleans(), max_size=4))
        if known
        else None
    )


_TESTS = st.sampled_from(
    (
        dra.gpu.product == "NVIDIA A100-SXM4-80GB",
        dra.gpu.product.contains("H100"),
        dra.gpu.product.startswith('"NVIDIA\\'),
        dra.gpu.architecture.one_of("Hopper", "Blackwell"),
        dra.gpu.memory >= "40Gi",
        dra.gpu.memory < "1000000Ti",
        dra.gpu.compute_capability >= "9.0.0",
        dra.gpu.driver_version >= "570.0.0",
        dra.gpu.pcie_root.exists(),
        dra.gpu.profile.missing(),
        dra.with_capabilities({"tensor-cores", "bf16"}),
        dra.attribute("nic.example.com/speed") > 100,
        dra.attribute("nic.example.com/rdma").exists(),
        dra.capacity("nic.example.com/bandwidth") >= "10Gi",
        dra.driver("gpu.nvidia.com"),
        dra.cel('device.attributes["gpu.nvidia.com"].type == "gpu"'),
        dra.cel("true"),
    )
)
selectors = st.recursive(
    _TESTS,
    lambda inner: (
        st.builds(lambda a, b: a & b, inner, inner)
        | st.builds(lambda a, b: a | b, inner, inner)
        | st.builds(lambda a: ~a, inner)
    ),
    max_leaves=6,
)
tolerations = st.builds(
    dra.Toleration,
    key=st.sampled_from(("gpu.nvidia.com/xid", "a")),
    effect=st.sampled_from((None, "NoSchedule", "NoExecute")),
) | st.builds(
    dra.Toleration,
    key=st.just("acme.example/broken"),
    operator=st.just("Equal"),
    value=st.sampled_from(("", "yes")),
    effect=st.just("NoExecute"),
    seconds=st.sampled_from((None, 0, 30, 2**40)),
)
capacities = st.dictionaries(
    st.sampled_from(("memory", "gpu.nvidia.com/memory", "shares")),
    st.sampled_from(("20Gi", "1", "0", "1500m", "1e3", "0.1Ki")),
    max_size=2,
)

_WORDS = (
    "",
    " ",
    "A B",
    "Trainer",
    "-a",
    "ü",
    "日本",
    "a/b/c",
    "A.b/c",
    "a\x00b",
    "\ud800",
    "a\nb",
    "{{ x }}",
    "n" * 64,
    "n" * 254,
    "n" * 20_000,
    "H10O",
    "NVIDIA H100 80GB HBM",
    "1g.10bg",
    "TimeSlicingSetings",
    "40G i",
    "1e999Gi",
    "-1",
    "99999999999999999999999999",
    "true",
    "hgx-h10",
    "1.33",
    "kubernetes.io/gpu",
    "gpu.nvidia.com",
    "mig.nvidia.com",
    "device.",
    "[1,2,3].all(x, [1,2,3].all(y, x == y))",
)
hostile: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(_WORDS),
    st.text(max_size=5),
    st.sampled_from(
        (None, True, False, 0, -1, 1, 33, 2**31, 2**63, 10**30, 1.5, float("nan"), float("inf"), b"x", ...)
    ),
    st.builds(dra.cel, st.sampled_from(_WORDS)),
    st.builds(lambda value: [value], st.sampled_from((None, 1, "", "a", "a" * 300))),
    st.builds(lambda value: ["a"] * value, st.sampled_from((0, 2, 17, 33))),
    st.dictionaries(
        st.sampled_from((*_WORDS[:20], "memory", 1, None)),
        st.sampled_from((None, 1, True, *_WORDS[:20])),
        max_size=2,
    ),
    st.dictionaries(
        st.sampled_from((*_WORDS[:20], "a/memory", "a/b/c", "-/x", "x" * 64)),
        st.sampled_from(("20Gi", "1", "v")),
        min_size=1,
        max_size=2,
    ),
    st.builds(set),
    st.builds(object),
    st.just(str),
    st.just(dra.gpu.product),
    st.builds(Later, st.sampled_from(_WORDS) | st.just(1), st.just(False)),
    st.just(dra.class_ref("a b")),
    st.just(dra.Toleration(operator="Equal")),
    st.just(dra.Alternative("x", device_class="a")),
    st.just(dra.DeviceRequest("x")),
    st.just(dra.MatchAttribute("memory")),
    st.just(dra.Mps(active_thread_percentage=101)),
    st.just(dra.OpaqueConfig(driver="gpu.example.com", parameters={"a": "x" * 11_000})),
    st.just(ClusterTarget(kubernetes="1.33")),
    st.just(ClusterTarget(gates={"DRANoSuch": True})),
)
"""What nobody should write: misspelt, huge, of another type, an Output where the structure depends on it."""
