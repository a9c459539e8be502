from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_infra.codes import CODES
from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import DeviceView, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match, NoMatch, derive_attribute

A = 'device.attributes["gpu.nvidia.com"]'
C = 'device.capacity["gpu.nvidia.com"]'
H100 = DeviceView(
    "gpu.nvidia.com",
    {
        "productName": DeviceAttribute(string="NVIDIA H100 80GB HBM3"),
        "cudaComputeCapability": DeviceAttribute(version="9.0.0"),
        "resource.kubernetes.io/numaNode": DeviceAttribute(int=1),
    },
    {"memory": DeviceCapacity(value="81559Mi")},
    True,
)


def evaluate(expression: str, view: DeviceView = H100):
    return compile_expression(expression).evaluate(view)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.nvidia.com"',
        f'{A}.productName.contains("H100")',
        f'{A}["productName"].startsWith("NVIDIA")',
        f'{A}.cudaComputeCapability.compareTo(semver("9.0.0")) >= 0',
        f'{A}.cudaComputeCapability.isLessThan(semver("9.0.1-rc.1"))',
        f"{A}.cudaComputeCapability.major() == 9",
        f'{C}.memory.compareTo(quantity("79Gi")) >= 0',
        f'{C}.memory.isLessThan(quantity("80Gi"))',
        'device.attributes["resource.kubernetes.io"].numaNode == 1',
        "device.allowMultipleAllocations",
        f"!has({A}.uuid)",
        '!has(device.attributes["no.such"].uuid)',
        f'{A}.?uuid.orValue("none") == "none"',
        f'cel.bind(gpu, {A}, gpu.productName.endsWith("HBM3"))',
    ],
)
def test_a_device_matches_what_is_true_of_it(expression: str):
    assert evaluate(expression) == Match()


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "other.example.com"',
        f'{A}.productName == "NVIDIA A100"',
        f'{C}.memory.compareTo(quantity("80Gi")) >= 0',
        f'{A}.cudaComputeCapability.compareTo(semver("10.0.0")) >= 0',
    ],
)
def test_a_device_does_not_match_what_is_false_of_it(expression: str):
    assert evaluate(expression) == NoMatch()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f"{A}.nope == 1", "no such key: nope"),
        (f'{C}.nope.compareTo(quantity("1")) > 0', "no such key: nope"),
        ('device.attributes["no.such"].x == 1', "no such key: x"),
        (f'{A}.cudaComputeCapability == "9.0.0"', "no such overload"),
        (
            f'{A}.productName.compareTo(semver("9.0.0")) > 0',
            "no such overload: compareTo(string, kubernetes.Semver)",
        ),
        (f'{A}.cudaComputeCapability.compareTo(semver("9.0")) > 0', "No Major.Minor.Patch elements found"),
        ("1 / 0 == 1", "division by zero"),
        (
            f"{A}.cudaComputeCapability",
            (
                "CEL result of type kubernetes.Semver could not be converted to bool: "
                "type conversion error from 'Semver' to 'bool'"
            ),
        ),
    ],
)
def test_a_failure_says_what_the_scheduler_says(expression: str, text: str):
    assert evaluate(expression) == Failed(text)


def test_an_error_is_absorbed_by_a_decided_operand_on_either_side():
    assert evaluate(f"{A}.nope == 1 || true") == Match()
    assert evaluate(f"false && {A}.nope == 1") == NoMatch()
    assert evaluate(f"{A}.nope == 1 && false") == NoMatch()


def test_what_is_not_known_here_is_said_so():
    # Go goes over the keys of a map in another order each time.
    verdict = evaluate(f'{A}.map(name, name)[0] == "productName"')
    assert verdict == Failed("a result that depends on the order of a map", decided=False)
    assert "cel-not-decided-here" in CODES


def test_the_order_of_a_map_is_no_matter_where_the_verdict_does_not_depend_on_it():
    assert evaluate(f'"productName" in {A}.map(name, name)') == Match()
    assert evaluate(f"{A}.map(name, name).sort()[0] == 'cudaComputeCapability'") == Match()


def test_what_is_not_known_does_not_matter_where_another_operand_decides():
    unknown = f'{A}.map(name, name)[0] == "productName"'
    assert evaluate(f'device.driver == "other" && {unknown}') == NoMatch()
    assert evaluate(f'{unknown} || device.driver == "gpu.nvidia.com"') == Match()


def test_an_expression_that_does_not_compile_raises_its_problems():
    with pytest.raises(InvalidSpecError) as caught:
        compile_expression("device.driver ==")
    assert [problem.code for problem in caught.value.problems] == ["cel-syntax"]


def test_programs_are_compiled_once():
    assert compile_expression("true") is compile_expression("true")


def test_a_malformed_version_of_a_device_fails_every_expression():
    view = DeviceView("a.b", {"driver": DeviceAttribute(version="9.0")})
    assert evaluate("true", view) == Failed(
        "attribute driver: parse semantic version: No Major.Minor.Patch elements found"
    )


def test_an_attribute_without_a_value_fails_every_expression():
    assert evaluate("true", DeviceView("a.b", {"x": DeviceAttribute()})) == Failed(
        "attribute x: unsupported attribute value"
    )


def test_a_list_is_no_value_to_a_server_that_reads_none():
    attributes = {"x": DeviceAttribute.from_manifest({"ints": []}), "y": DeviceAttribute(int=1)}
    assert evaluate("true", DeviceView("a.b", attributes)) == Match()
    assert evaluate("true", DeviceView("a.b", attributes, reads_lists=False)) == Failed(
        "attribute x: unsupported attribute value"
    )


ONE, TWO, SMALL, LARGE = (
    DeviceAttribute(int=1),
    DeviceAttribute(int=2),
    DeviceCapacity(value="1Gi"),
    DeviceCapacity(value="2Gi"),
)
TWICE = DeviceView("a.b", {"x": ONE, "a.b/x": TWO, "y": ONE}, {"m": SMALL, "a.b/m": LARGE})
"""Attribute x is 1 or 2, and capacity m is 1Gi or 2Gi: upstream goes over a Go map, and the later spelling counts."""


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ("true", Match()),
        ("device.driver == 'a.b'", Match()),
        ("device.driver == 'other'", NoMatch()),
        ("device.attributes['a.b'].y == 1", Match()),
        # Whichever value counts, the answer is the same.
        ("device.attributes['a.b'].x > 0", Match()),
        ("device.attributes['a.b'].x == 3", NoMatch()),
        ("device.attributes['a.b'].x in [1, 2, 3]", Match()),
        ("has(device.attributes['a.b'].x)", Match()),
        ("device.attributes['a.b'].x == 2 || device.attributes['a.b'].y == 1", Match()),
        ("device.attributes['a.b'].size() == 2", Match()),
        ("device.attributes['a.b'].exists(name, name == 'x')", Match()),
        ("device.capacity['a.b'].m.compareTo(quantity('1Gi')) >= 0", Match()),
        ("device.capacity['a.b'].m.isGreaterThan(quantity('3Gi'))", NoMatch()),
    ],
)
def test_an_attribute_in_two_spellings_is_no_matter_to_expressions_that_answer_alike(expression, verdict):
    assert evaluate(expression, TWICE) == verdict


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("device.attributes['a.b'].x == 1", "a.b/x"),
        ("device.attributes['a.b'].x != 2", "a.b/x"),
        ("device.attributes['a.b'].x == device.attributes['a.b'].y", "a.b/x"),
        ("[1, 2][device.attributes['a.b'].x] == 2", "a.b/x"),
        ("device.attributes['a.b'].x == 2 && device.attributes['a.b'].y == 1", "a.b/x"),
        ("device.capacity['a.b'].m.compareTo(quantity('1Gi')) > 0", "a.b/x"),
    ],
)
def test_an_attribute_in_two_spellings_leaves_undecided_what_depends_on_it(expression, name):
    verdict = evaluate(expression, TWICE)
    assert verdict == Failed(
        f"{name} is given twice, and which value counts is random upstream", decided=False
    )


def test_values_of_two_types_in_two_spellings_are_two_values():
    view = DeviceView("a.b", {"x": DeviceAttribute(int=1), "a.b/x": DeviceAttribute(bool=True)})
    assert evaluate("type(device.attributes['a.b'].x) == bool", view).decided is False
    assert evaluate("device.driver == 'a.b'", view) == Match()


def test_of_many_attributes_in_two_spellings_those_count_that_are_read():
    names = [f"x{number}" for number in range(20)]
    attributes = dict.fromkeys(names, ONE) | dict.fromkeys((f"a.b/{name}" for name in names), TWO)
    view = DeviceView("a.b", attributes)
    assert evaluate("device.driver == 'a.b'", view) == Match()
    assert evaluate("device.attributes['a.b'].x3 + device.attributes['a.b'].x7 < 5", view) == Match()
    assert (
        evaluate("device.attributes['a.b'].all(name, device.attributes['a.b'][name] > 0)", view).decided
        is False
    )


def test_an_attribute_in_two_spellings_with_one_value_is_decided():
    assert evaluate("device.attributes['a.b'].x == 1", DeviceView("a.b", {"x": ONE, "a.b/x": ONE})) == Match()


@pytest.mark.parametrize(
    ("expression", "derived"),
    [("device.attributes['a.b'].y", {"int": 1}), ("device.attributes['a.b'].x", None)],
)
def test_a_derived_attribute_is_decided_unless_it_reads_two_values(expression, derived):
    value = derive_attribute(expression, TWICE)
    assert value == derived if derived else value.decided is False


def test_a_number_beyond_64_bits_is_withheld():
    verdict = evaluate("true", DeviceView("a.b", {"x": DeviceAttribute.model_construct(int_=2**63)}))
    assert isinstance(verdict, Failed)
    assert not verdict.decided


def test_lists_are_seen_as_lists():
    view = DeviceView(
        "a.b",
        {
            "numaNode": DeviceAttribute(ints=[0, 1]),
            "flags": DeviceAttribute(bools=[True]),
            "names": DeviceAttribute(strings=["x"]),
            "versions": DeviceAttribute(versions=["1.0.0", "2.0.0"]),
        },
    )
    domain = 'device.attributes["a.b"]'
    assert evaluate(f"1 in {domain}.numaNode && {domain}.flags[0]", view) == Match()
    assert evaluate(f'{domain}.names.includes("x")', view) == Match()
    assert evaluate(f'{domain}.versions.exists(v, v.isGreaterThan(semver("1.5.0")))', view) == Match()


def test_includes_takes_a_single_value_for_a_list_of_one():
    assert evaluate('device.attributes["resource.kubernetes.io"].numaNode.includes(1)') == Match()


def test_programs_and_views_may_be_shared_by_threads():
    program = compile_expression(f'{A}.productName.contains("H100")')
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: program.evaluate(H100), range(400))) == {Match()}


def test_importing_the_package_does_not_load_the_engine():
    code = "import sys, dra_infra.kubernetes.cel.check; print(sorted({'cel_expr_python', 'google.protobuf', 'pulumi'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
