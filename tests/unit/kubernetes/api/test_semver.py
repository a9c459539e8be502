from __future__ import annotations

import itertools

import pytest
import semver as reference
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import Semver

ASCENDING = [
    # semver.org, section 11.
    "0.0.0",
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0--",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-alpha-",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1-a",
    "1.0.1",
    "1.2.0",
    "2.0.0",
    "10.0.0",
    "18446744073709551615.0.0",
]


@pytest.mark.parametrize(("lower", "higher"), list(itertools.pairwise(ASCENDING)))
def test_versions_ascend_as_the_specification_says(lower: str, higher: str):
    assert Semver.parse(lower) < Semver.parse(higher)
    assert Semver.parse(lower) != Semver.parse(higher)


def test_build_metadata_plays_no_part():
    assert Semver.parse("1.0.0+a") == Semver.parse("1.0.0+b.2")
    assert hash(Semver.parse("1.0.0+a")) == hash(Semver.parse("1.0.0"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("9", "No Major.Minor.Patch elements found"),
        ("9.0", "No Major.Minor.Patch elements found"),
        ("v9.0.0", 'Invalid character(s) found in major number "v9"'),
        ("9.x.0", 'Invalid character(s) found in minor number "x"'),
        ("1.2.3.4", 'Invalid character(s) found in patch number "3.4"'),
        ("01.0.0", 'Major number must not contain leading zeroes "01"'),
        ("1.01.0", 'Minor number must not contain leading zeroes "01"'),
        ("570.86.05", 'Patch number must not contain leading zeroes "05"'),
        ("1.2.", 'strconv.ParseUint: parsing "": invalid syntax'),
        (
            "18446744073709551616.0.0",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
        ),
        ("1.0.0-", "Prerelease is empty"),
        ("1.0.0-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.0.0-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.0.0+", "Build meta data is empty"),
        ("1.0.0+a_b", 'Invalid character(s) found in build meta data "a_b"'),
    ],
)
def test_a_malformed_version_is_refused_in_the_words_of_the_go_library(text: str, message: str):
    with pytest.raises(ValueError, match=r".") as caught:
        Semver.parse(text)
    assert str(caught.value) == message


def test_a_version_may_be_of_any_length():
    assert Semver.parse(f"1.0.0-{'a' * 10_000}").prerelease == ("a" * 10_000,)
    with pytest.raises(ValueError, match=r"1{10000}\": value out of range$"):
        Semver.parse(f"{'1' * 10_000}.0.0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("v01.02.03", "1.2.3"),
        ("0.00.0", "0.0.0"),
        ("1.2.03-rc", "1.2.3-rc"),
    ],
)
def test_normalized_versions_are_completed(text: str, expected: str):
    assert Semver.parse_normalized(text).text == expected


def test_a_short_version_with_a_prerelease_is_not_completed():
    with pytest.raises(ValueError, match="short version cannot contain PreRelease/Build meta data"):
        Semver.parse_normalized("1.2-rc")


numbers = st.integers(0, 12) | st.integers(0, 2**64 - 1)
parts = numbers.map(str) | st.text("0az-A", min_size=1, max_size=3).filter(lambda text: not text.isdigit())
versions = st.builds(
    lambda core, before, after: (
        ".".join(map(str, core)) + ("-" + ".".join(before) if before else "") + (f"+{after}" if after else "")
    ),
    st.tuples(numbers, numbers, numbers),
    st.lists(parts, max_size=3),
    st.sampled_from(["", "b", "001"]),
)


@given(versions, versions)
def test_the_order_is_that_of_another_implementation(first: str, second: str):
    ours = (Semver.parse(first) > Semver.parse(second)) - (Semver.parse(first) < Semver.parse(second))
    assert ours == reference.Version.parse(first).compare(second)
