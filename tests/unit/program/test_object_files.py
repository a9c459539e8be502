"""Names of the files of a program's objects: one for each object, on every file system."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from dra_infra.program.object_files import FILE_NAME, path_of

TEXTS = st.text(max_size=300)
OBJECTS = st.tuples(
    st.sampled_from(["v1", "serving.knative.dev/v1", "x-k8s.io/v1"]),
    st.sampled_from(["Service", "Job", "ResourceClaim"]),
    TEXTS,
    TEXTS.filter(bool),
)


def path(api: str, kind: str, namespace: str, name: str) -> str:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return path_of({"apiVersion": api, "kind": kind, "metadata": metadata})


@given(first=OBJECTS, second=OBJECTS)
@example(first=("v1", "Service", "a-b", "c"), second=("v1", "Service", "a", "b-c"))
@example(first=("v1", "Service", "", "x"), second=("serving.knative.dev/v1", "Service", "", "x"))
@example(first=("v1", "Service", "..", "../../x"), second=("v1", "Service", "", "X"))
@example(first=("v1", "Service", "", "x" * 253), second=("v1", "Service", "", "x" * 252))
def test_other_objects_have_other_files_below_the_folder(
    first: tuple[str, str, str, str], second: tuple[str, str, str, str]
):
    paths = path(*first), path(*second)
    for each in paths:
        assert FILE_NAME.fullmatch(each), each
        assert each == each.lower()
        assert all(len(part) <= 250 and part not in ("", ".", "..") for part in each.split("/"))
    assert (paths[0] == paths[1]) == (first == second)
