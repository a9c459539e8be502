"""Device classes, claims and claim templates."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import dra_infra as dra
from tests.support.arguments import values
from tests.support.arguments.calls import Call, Later, Made
from tests.support.arguments.configs import configs

MADE_CLASS = Call("GpuDeviceClass", "made", {"select": dra.gpu.memory >= "40Gi"})
"""What `Made(0)` of a drawn program is."""

class_names = st.one_of(
    st.just(Made(0)),
    st.sampled_from(("gpu.nvidia.com", "mig.nvidia.com", "gpu.example.com", "h100", "a.b")),
    st.builds(dra.class_ref, st.sampled_from(("gpu.nvidia.com", "h100"))),
    st.builds(dra.class_ref, st.just(Later("h100", known=False))),
)
attributes = st.sampled_from(
    (dra.gpu.product, dra.gpu.pcie_root, "gpu.nvidia.com/productName", "nic.example.com/rail")
)


def common() -> dict[str, st.SearchStrategy[Any]]:
    """The arguments that all claims have."""
    return {
        "namespace": values.namespaces,
        "object_name": values.object_names,
        "labels": values.labels,
        "annotations": values.annotations,
        "replace": st.sampled_from((None, "delete-first")),
        "driver_release": values.lines,
        "driver_gates": values.driver_gates(),
        "target": values.targets(),
    }


_LEAF: dict[str, st.SearchStrategy[Any]] = {
    "count": values.counts,
    "select": st.none() | values.selectors,
    "tolerations": st.lists(values.tolerations, max_size=3),
    "capacity": values.capacities,
}


def _some(arguments: dict[str, st.SearchStrategy[Any]], **needed: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(needed, optional=arguments)


_alternatives = st.lists(
    st.tuples(values.names, _some(_LEAF, device_class=class_names)),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each[0],
).map(lambda drawn: [dra.Alternative(name, **arguments) for name, arguments in drawn])
_leaf_request = st.builds(
    lambda name, arguments: dra.DeviceRequest(name, **arguments),
    values.names,
    _some({**_LEAF, "admin_access": st.booleans()}, device_class=class_names),
)
_ladder_request = st.builds(
    lambda name, rungs: dra.DeviceRequest(name, first_available=rungs), values.names, _alternatives
)
_requests = st.lists(
    _leaf_request | _ladder_request, min_size=1, max_size=4, unique_by=lambda each: each.name
)


@st.composite
def _claim(draw: st.DrawFn, kind: str) -> Call:
    listed = draw(st.booleans())
    if listed:
        asked = draw(_requests)
        arguments: dict[str, Any] = {"requests": asked}
    else:
        asked = []
        arguments = draw(
            _some({**_LEAF, "admin_access": st.booleans()}, device_class=class_names)
            | _some({}, first_available=_alternatives)
        )
    known = tuple(each.name for each in asked) or ("gpu",)
    constraint = st.builds(
        lambda make, attribute, names: make(attribute, requests=names),
        st.sampled_from((dra.MatchAttribute, dra.DistinctAttribute)),
        attributes,
        st.lists(st.sampled_from(known), max_size=2, unique=True),
    )
    if draw(st.booleans()):
        arguments["constraints"] = draw(st.lists(constraint, max_size=3))
    if draw(st.booleans()):
        arguments["configs"] = draw(configs(known))
    return Call(kind, draw(values.names), {**arguments, **draw(_some(common()))})


def claims() -> st.SearchStrategy[Call]:
    """A claim or template that somebody could mean."""
    return _claim("GpuClaimTemplate") | _claim("GpuClaim")


@st.composite
def classes(draw: st.DrawFn) -> Call:
    """A class that somebody could mean."""
    both = common()
    arguments = _some(
        {
            "select": values.selectors,
            "driver": st.sampled_from(("gpu.nvidia.com", "gpu.example.com", "nic.example.com")),
            "configs": configs(),
            "extended_resource_name": st.sampled_from(("example.com/h100", "acme.example/gpu")),
            **{key: both[key] for key in both if key not in ("namespace", "replace")},
        }
    )
    return Call("GpuDeviceClass", draw(values.names | st.just("h100.acme.example")), draw(arguments))
