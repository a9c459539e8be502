"""Regular expressions: what Go says of those that the engine sees otherwise."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.cel import check_expression
from dra_infra.kubernetes.cel.patterns import PatternError, refuse_pattern


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?P<n>a)", ""),
        ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
        ("[(?P<é>]a", ""),
        (r"\Q(?P<é>\E", ""),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?<!>a)", "invalid named capture: `(?<!>`"),
        ("\\x{", "invalid escape sequence: `\\x{`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\C(?=", r"invalid escape sequence: `\C`"),
        (r"(?=\C", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\y\C", r"invalid escape sequence: `\y`"),
        (r"[]a]\C[][\b]", r"invalid escape sequence: `\C`"),
        (r"\Q\C", ""),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("|".join(f"gpu-{number}" for number in range(600)), ""),
        ("(" * 200 + "a" + ")" * 200, ""),
    ],
)
def test_patterns_are_refused_in_gos_words(pattern: str, reason: str):
    assert refuse_pattern(pattern) == (f"error parsing regexp: {reason}" if reason else "")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\p{greek}", "a class of characters that only some releases of Go know"),
        (r"\p{Letter}", "a class of characters that only some releases of Go know"),
        (r"\p{Nag_Mundari}", "a class of characters that only some releases of Go know"),
        ("(" * 1001 + "a" + ")" * 1001, "a regular expression that Go may find nested too deeply"),
        (r"\pL{1000}", "a regular expression that is too large for the engine"),
    ],
)
def test_what_go_says_may_not_be_known(pattern: str, reason: str):
    with pytest.raises(PatternError, match=f"^{reason}$"):
        refuse_pattern(pattern)
    checked = check_expression(f"device.driver.matches(r'{pattern}')")
    assert (checked.undecided, [problem.code for problem in checked.problems]) == (
        reason,
        ["cel-not-decided-here"],
    )
