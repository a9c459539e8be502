from __future__ import annotations

import pytest

GPU = 'device.attributes["gpu.nvidia.com"]'
MEMORY = 'device.capacity["gpu.nvidia.com"].memory'


def with_guard(test):
    return f"has({MEMORY}) && {MEMORY}{test}"


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        (f'{GPU}.driverVersion >= "535"', f'write {GPU}.driverVersion.compareTo(semver("535.0.0")) >= 0'),
        (
            f'{GPU}.driverVersion == "570.86.5"',
            f'write {GPU}.driverVersion.compareTo(semver("570.86.5")) == 0',
        ),
        (
            f'{GPU}.driverVersion.startsWith("570")',
            f'write {GPU}.driverVersion.compareTo(semver("570.0.0")) >= 0',
        ),
        (
            f"{GPU}.cudaComputeCapability >= 9.0",
            f'write {GPU}.cudaComputeCapability.compareTo(semver("9.0.0")) >= 0',
        ),
        (f"{GPU}.type == 1", f'write {GPU}.type == "1"'),
        (f'has({GPU}.partition2) && {GPU}.partition2 == "3"', f"write {GPU}.partition2 == 3"),
        (f'{GPU}.architecture.isGreaterThan(semver("1.0.0"))', f'write {GPU}.architecture == "1.0.0"'),
    ],
)
def test_values_of_another_type(inputs, expression, hint):
    (problem,) = inputs.of_selector(expression)
    assert (problem.code, problem.hint) == ("cel-value-type", hint)


@pytest.mark.parametrize(
    "expression",
    [
        f'{GPU}.driverVersion.isGreaterThan(semver("535.0.0"))',
        f'{GPU}.cudaComputeCapability == semver("9.0.0")',
        f"has({GPU}.partition2) && {GPU}.partition2 >= 2.0",
        f'{GPU}.uuid.startsWith("GPU-")',
    ],
)
def test_values_of_the_right_type_pass(inputs, expression):
    assert inputs.of_selector(expression) == []


@pytest.mark.parametrize(
    ("expression", "code", "hint"),
    [
        (f'{GPU}.productName.contains("H1OO")', "product-not-known", "did you mean 'H100'?"),
        (f'{GPU}.productName == "NVIDIA H100 80GB HBM"', "product-not-known", "'NVIDIA H100 80GB HBM3'"),
        (
            f'{GPU}.productName == "H100"',
            "product-not-known",
            'write .contains("H100") in place of ==, or == "NVIDIA H100',
        ),
        (f'{GPU}.productName in ["NVIDIA H1000"]', "product-not-known", "did you mean"),
        (f'{GPU}.productName.contains("Radeon Instinct")', "product-not-known", "as nvidia-smi prints them"),
        (f'{GPU}.architecture == "hopper"', "attribute-value-not-known", "did you mean 'Hopper'?"),
        (f'{GPU}.type == "GPU"', "attribute-value-not-known", "did you mean 'gpu'?"),
        (f'{GPU}.brand == "NVIDIA"', "attribute-value-not-known", "did you mean 'Nvidia'?"),
    ],
)
def test_values_that_nothing_has(inputs, expression, code, hint):
    (problem,) = inputs.of_selector(expression)
    assert problem.code == code
    assert hint in problem.hint


@pytest.mark.parametrize(
    "expression",
    [
        f'{GPU}.productName.contains("H100")',
        f'{GPU}.productName.matches("H1.*")',
        f'{GPU}.productName != "anything"',
        f'{GPU}.architecture in ["Hopper", "Newer"]',
        f'!{GPU}.productName.contains("H1OO")',
    ],
)
def test_values_that_some_device_may_have_pass(inputs, expression):
    assert [each for each in inputs.of_selector(expression) if "!" not in expression] == []


@pytest.mark.parametrize(
    ("profile", "known"), [("1g.10gb", True), ("1g.10gb+me", True), ("1g.11gb", False), ("1g10gb", False)]
)
def test_mig_profiles_are_those_of_some_model(inputs, profile, known):
    problems = inputs.of_selector(f'{GPU}.profile == "{profile}"', of="mig.nvidia.com")
    assert [each.code for each in problems] == ([] if known else ["attribute-value-not-known"])


@pytest.mark.parametrize(
    ("test", "meant"),
    [
        ('.compareTo(quantity("80Mi")) >= 0', "80Gi"),
        ('.compareTo(quantity("81920")) >= 0', "80Gi"),
        ('.isGreaterThan(quantity("40Ti"))', "40Gi"),
        ('.compareTo(quantity("81920Gi")) >= 0', "80Gi"),
    ],
)
def test_units_that_slipped(inputs, test, meant):
    (problem,) = inputs.of_selector(with_guard(test))
    assert problem.code == "quantity-unit-slip"
    assert problem.hint == f'did you mean quantity("{meant}")?'


@pytest.mark.parametrize(
    "test",
    [
        '.compareTo(quantity("40Gi")) >= 0',
        '.compareTo(quantity("79Gi")) >= 0',
        '.compareTo(quantity("40000Mi")) >= 0',
        '.compareTo(quantity("80G")) >= 0',
        '.isLessThan(quantity("1Ti"))',
        '.compareTo(quantity("0")) > 0',
        '.compareTo(quantity("512Mi")) >= 0',
    ],
)
def test_amounts_that_cards_have_pass(inputs, test):
    assert inputs.of_selector(with_guard(test)) == []


@pytest.mark.parametrize(
    ("amount", "missed", "hint"),
    [
        ("80Gi", "NVIDIA H100 80GB HBM3 (79.6 GiB)", 'quantity("79Gi")'),
        ("141Gi", "NVIDIA H200 (140.4 GiB)", 'quantity("140Gi")'),
        ("48Gi", "NVIDIA L40S (45.0 GiB)", 'quantity("44Gi")'),
        ("24Gi", "NVIDIA L4 (22.5 GiB)", 'quantity("22Gi")'),
    ],
)
def test_cards_that_an_amount_just_misses(inputs, amount, missed, hint):
    (problem,) = inputs.of_selector(with_guard(f'.compareTo(quantity("{amount}")) >= 0'))
    assert problem.code == "memory-just-missed"
    assert missed in problem.message
    assert hint in problem.hint


def test_cards_that_another_test_leaves_out_are_not_missed(inputs):
    wanted = with_guard('.compareTo(quantity("80Gi")) >= 0')
    a100 = f'{GPU}.productName == "NVIDIA A100-SXM4-80GB"'
    assert inputs.of_selector(f"{a100} && {wanted}") == []
    assert inputs.of_selector(a100, wanted) == []
    own = inputs.a_class("a100", f'device.driver == "gpu.nvidia.com" && {GPU}.type == "gpu"', a100)
    assert inputs.of_selector(wanted, of="a100", classes=[own]) == []


def test_mig_devices_are_no_cards(inputs):
    assert inputs.of_selector(f'{MEMORY}.compareTo(quantity("80Gi")) >= 0', of="mig.nvidia.com") == []


def test_long_lists_and_texts_are_said_once_and_briefly(inputs):
    names = ", ".join(f'"NVIDIA Z{index}"' for index in range(300))
    for test in (f"in [{names}]", f'== "{"x" * 5000}"'):
        (problem,) = inputs.of_selector(f"{GPU}.productName {test}")
        assert problem.code == "product-not-known"
        assert len(problem.message) < 300
