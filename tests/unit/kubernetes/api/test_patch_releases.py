"""Versions as people and clusters write them, the patches that are known, and the table of what differs between patches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import SUPPORTED_MINORS, Release
from dra_infra.kubernetes.api.patches import (
    COMPARED_PATCHES,
    KNOWN_PATCHES,
    PATCH_ROWS,
    PatchBehaviour,
    read_version,
    shorten_version,
)
from dra_infra.target import ClusterTarget, check_target, supported_version


def release_of(patch: str) -> Release:
    return Release(minor=patch.rpartition(".")[0], gates=frozenset(), patch=patch)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("1.37", "1.37"),
        ("v1.37", "1.37"),
        ("1.37.2", "1.37.2"),
        ("v1.37.2", "1.37.2"),
        ("v1.37.2+k3s1", "1.37.2"),
        ("v1.36.5-gke.1234000", "1.36.5"),
        ("v1.36.5-eks-3025e55", "1.36.5"),
        ("v1.35.9+rke2r1", "1.35.9"),
        ("v1.38.0-beta.0", "1.38.0"),
        ("1.37.02", "1.37.2"),
    ],
)
def test_a_version_is_read_as_kubectl_version_prints_it(written: str, text: str):
    assert shorten_version(written) == text
    version = read_version(written)
    assert version is not None
    assert version.text == text
    assert version.minor == ".".join(text.split(".")[:2])


@pytest.mark.parametrize(
    "written", ["", "latest", "37", "1", "1.37.", "1.37.2.1", "1.37 ", "v", "V1.37", "1.37.2+", "1.37.2+a b"]
)
def test_what_is_no_version_stays_as_it_is(written: str):
    assert read_version(written) is None
    assert shorten_version(written) == written


@given(st.text(max_size=40))
def test_every_text_is_read_and_reading_again_changes_nothing(written: str):
    short = shorten_version(written)
    assert shorten_version(short) == short


def test_every_minor_has_its_patches_and_the_compared_one_is_known():
    assert tuple(KNOWN_PATCHES) == tuple(COMPARED_PATCHES) == SUPPORTED_MINORS
    for minor, known in KNOWN_PATCHES.items():
        assert COMPARED_PATCHES[minor] == known[0]
        assert [int(each.rpartition(".")[2]) for each in known] == sorted(
            {int(each.rpartition(".")[2]) for each in known}
        )
        assert all(each.startswith(f"{minor}.") for each in known)


def test_a_minor_alone_is_its_newest_known_patch():
    for minor, known in KNOWN_PATCHES.items():
        (release,) = ClusterTarget(kubernetes=minor).releases
        assert (release.patch, release.rules) == (known[-1], known[-1])
        assert release == ClusterTarget(kubernetes=f"v{known[-1]}+k3s1").releases[0]


@pytest.mark.parametrize(
    ("patch", "rules"),
    [
        ("1.37.0", "1.37.1"),
        ("1.37.1", "1.37.1"),
        ("1.37.2", "1.37.2"),
        ("1.37.9", "1.37.2"),
        ("1.34.11", "1.34.11"),
        ("1.34.2", "1.34.10"),
    ],
)
def test_a_patch_that_was_not_read_follows_the_nearest_one(patch: str, rules: str):
    assert ClusterTarget(kubernetes=patch).releases[0].rules == rules
    assert ClusterTarget(kubernetes=patch).releases[0].patch == patch


def test_equal_versions_make_equal_targets():
    spellings = ("1.37.2", "v1.37.2", "v1.37.2+k3s1")
    assert len({ClusterTarget(kubernetes=each) for each in spellings}) == 1
    assert ClusterTarget(kubernetes="1.37.1") != ClusterTarget(kubernetes="1.37.2")
    assert ClusterTarget(kubernetes="1.37.1").releases != ClusterTarget(kubernetes="1.37.2").releases


@pytest.mark.parametrize("written", ["1.33.4", "v1.38.0", "1.3", "latest"])
def test_a_patch_of_an_unknown_minor_is_refused(written: str):
    (problem,) = check_target(ClusterTarget(kubernetes=written))
    assert (problem.path, problem.code) == ("kubernetes", "unknown-kubernetes")
    assert supported_version(written) == ""


def test_a_server_without_a_patch_is_not_taken_for_one():
    assert supported_version("v1.37") == ""
    assert supported_version("v1.37.2+k3s1") == "1.37.2"


FIRST = [
    (behaviour, f"1.{minor}.{patch}")
    for behaviour, row in PATCH_ROWS.items()
    for minor, patch in row.since.items()
]


@pytest.mark.parametrize(("behaviour", "first"), FIRST)
def test_a_behaviour_begins_with_its_patch(behaviour: PatchBehaviour, first: str):
    minor, _, number = first.rpartition(".")
    assert release_of(first).does(behaviour)
    assert release_of(f"{minor}.{int(number) + 1}").does(behaviour)
    assert not release_of(f"{minor}.{int(number) - 1}").does(behaviour)


def test_the_table_has_a_row_for_every_behaviour_with_its_upstream_change():
    assert set(PATCH_ROWS) == set(PatchBehaviour)
    for row in PATCH_ROWS.values():
        assert row.change.startswith("https://github.com/kubernetes/kubernetes/pull/")
        assert row.files
        assert row.before
        assert list(row.since) == sorted(row.since)
