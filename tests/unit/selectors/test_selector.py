from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_infra.codes import CODES
from dra_infra.errors import SelectorError
from dra_infra.kubernetes.cel import DeviceView, check_expression, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match
from dra_infra.selectors.any_attribute import attribute, capacity, version
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector, cel, driver

GOLDEN = Path(__file__).parent / "golden" / "selectors.txt"

TABLE: dict[str, Selector] = {
    "text ==": gpu.product == "NVIDIA H100 80GB HBM3",
    "text !=": gpu.product != "NVIDIA H100 80GB HBM3",
    "text contains": gpu.product.contains("H100"),
    "text not contains": ~gpu.product.contains("H100"),
    "text startswith": gpu.product.startswith("NVIDIA"),
    "text endswith": gpu.product.endswith("HBM3"),
    "text matches": gpu.product.matches(r"^NVIDIA (H100|H200)\b"),
    "text not matches": ~gpu.product.matches("H[12]00"),
    "text one_of": gpu.architecture.one_of("Hopper", "Blackwell"),
    "text not one_of": ~gpu.architecture.one_of("Hopper", "Blackwell"),
    "text one_of one": gpu.architecture.one_of("Hopper"),
    "text quoted": attribute("a.example.com/x") == 'a "b" \\ c\n',
    "exists": gpu.uuid.exists(),
    "missing": gpu.profile.missing(),
    "not exists": ~gpu.uuid.exists(),
    "not missing": ~gpu.profile.missing(),
    "capacity ==": gpu.memory == "80Gi",
    "capacity !=": gpu.memory != "80Gi",
    "capacity >=": gpu.memory >= "40Gi",
    "capacity <": gpu.memory < "40Gi",
    "capacity reversed": "40Gi" <= gpu.memory,  # noqa: SIM300
    "capacity not >=": ~(gpu.memory >= "40Gi"),
    "capacity between": gpu.memory.between("40Gi", "80Gi"),
    "capacity not between": ~gpu.memory.between("40Gi", "80Gi"),
    "capacity keeps spelling": gpu.memory > "40960Mi",
    "version >=": gpu.compute_capability >= "9.0.0",
    "version ==": gpu.driver_version == "580.126.20",
    "version between": gpu.cuda_version.between("12.0.0", "13.0.0"),
    "int ==": gpu.numa_node == 1,
    "int not ==": ~(gpu.numa_node == 1),
    "int >": attribute("gpu.example.com/index") > -3,
    "int between": attribute("gpu.example.com/index").between(2, 5),
    "int one_of": attribute("gpu.example.com/index").one_of(0, 2, 4),
    "bool ==": attribute("a.example.com/flag") == True,  # noqa: E712
    "bool is_true": attribute("a.example.com/flag").is_true(),
    "bool is_false": attribute("a.example.com/flag").is_false(),
    "bool not is_true": ~attribute("a.example.com/flag").is_true(),
    "other version": version("gpu.example.com/driverVersion") >= "1.0.0",
    "other capacity": capacity("gpu.example.com/memory") >= "40Gi",
    "standard domain": gpu.pci_bus_id == "0000:65:00.0",
    "reserved word": attribute("a.example.com/namespace") == "x",
    "reserved word missing": attribute("a.example.com/in").missing(),
    "driver": driver("gpu.nvidia.com"),
    "not driver": ~driver("gpu.nvidia.com"),
    "and": gpu.product.contains("H100") & (gpu.memory >= "79Gi"),
    "and shares has": (gpu.memory >= "40Gi") & (gpu.memory < "80Gi"),
    "or": gpu.product.contains("H100") | gpu.product.contains("H200"),
    "not and": ~(gpu.product.contains("H100") & (gpu.memory >= "79Gi")),
    "not or": ~(gpu.product.contains("H100") | (gpu.memory >= "79Gi")),
    "not not": ~~(gpu.memory >= "79Gi"),
    "and of or": (gpu.type == "gpu") & ((gpu.memory >= "79Gi") | gpu.product.contains("H100")),
    "or of and": ((gpu.type == "gpu") & (gpu.memory >= "79Gi")) | gpu.profile.exists(),
    "cel": cel('device.driver == "a" || true'),
    "cel and": cel('device.driver == "a" || true') & gpu.profile.missing(),
    "not cel": ~cel("device.allowMultipleAllocations"),
    "multiprocessors": gpu.multiprocessors >= "42",
}


def test_the_text_of_every_selector_is_frozen():
    # Object names are hashes of these texts: a changed byte rolls every workload of every user.
    text = "".join(f"{name}\t{selector.expression()}\n" for name, selector in TABLE.items())
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert GOLDEN.is_file(), f"{GOLDEN.name} is missing: run with DRA_INFRA_UPDATE_GOLDEN=1"
    assert text == GOLDEN.read_text()


@pytest.mark.parametrize("name", TABLE)
def test_every_selector_passes_the_checker_without_a_warning(name: str):
    assert TABLE[name].problems("select") == ()


@pytest.mark.parametrize("name", [name for name in TABLE if "cel" not in name])
def test_no_selector_fails_on_a_device_that_has_nothing(name: str):
    assert not isinstance(compile_expression(TABLE[name].expression()).evaluate(DeviceView("x")), Failed)


@pytest.mark.parametrize("name", [name for name in TABLE if "cel" not in name])
def test_the_python_of_a_selector_reads_back_to_the_same_selector(name: str):
    names = {
        "gpu": gpu,
        "attribute": attribute,
        "driver": driver,
        "cel": cel,
        "version": version,
        "capacity": capacity,
    }
    assert eval(repr(TABLE[name]), names).expression() == TABLE[name].expression()  # noqa: S307


def test_selectors_that_are_written_alike_are_equal():
    assert (gpu.memory >= "40Gi").__eq__(gpu.memory >= "40Gi") is True
    assert hash(gpu.memory >= "40Gi") == hash(gpu.memory >= "40Gi")
    assert (gpu.memory >= "40Gi").__eq__(gpu.memory >= "41Gi") is False


MISUSE = [
    (lambda: (gpu.memory >= "40Gi") and gpu.profile.missing(), "selector-used-as-bool", "& for and"),
    (lambda: gpu.profile.missing() or gpu.profile.exists(), "selector-used-as-bool", "| for or"),
    (lambda: not gpu.profile.missing(), "selector-used-as-bool", "~ for not"),
    (lambda: "40Gi" <= gpu.memory <= "80Gi", "selector-used-as-bool", ".between(a, b)"),
    (lambda: gpu.product in ["a", "b"], "selector-used-as-bool", ".one_of(a, b)"),
    (lambda: gpu.product and gpu.brand, "selector-used-as-bool", "gpu.product == "),
    (lambda: not gpu.memory, "selector-used-as-bool", 'gpu.memory >= "40Gi"'),
    (lambda: "H100" in gpu.product, "selector-used-with-in", 'gpu.product.contains("H100")'),
    (lambda: gpu.memory >= 40, "selector-type", '"40Gi"'),
    (lambda: gpu.memory >= 79.6, "selector-type", '"79.6Gi"'),
    (lambda: gpu.memory >= True, "selector-type", '"40Gi"'),
    (lambda: gpu.compute_capability >= 9.0, "selector-type", '>= "1.2.3"'),
    (lambda: gpu.product == 100, "selector-type", "gpu.product == "),
    (lambda: gpu.product >= "H", "selector-type", 'version("gpu.nvidia.com/productName")'),
    (lambda: gpu.product == None, "selector-type", "gpu.product.missing()"),  # noqa: E711
    (lambda: gpu.product == ["a"], "selector-type", "gpu.product.one_of"),
    (lambda: gpu.product == gpu.brand, "selector-type", "cel(...)"),
    (lambda: gpu.numa_node == "1", "selector-type", "gpu.numa_node >= 1"),
    (lambda: gpu.numa_node == True, "selector-type", "gpu.numa_node >= 1"),  # noqa: E712
    (lambda: gpu.numa_node == 1.0, "selector-type", "gpu.numa_node >= 1"),
    (lambda: gpu.numa_node.between(1, 2.5), "selector-type", "gpu.numa_node >= 1"),
    (lambda: gpu.product.contains(100), "selector-type", "gpu.product == "),
    (lambda: gpu.product.one_of("a", 1), "selector-type", "gpu.product == "),
    (lambda: attribute("d.io/x") >= 1.5, "selector-type", 'attribute("d.io/x") == '),
    (lambda: attribute("d.io/x") >= True, "selector-type", 'attribute("d.io/x") == True'),
    (lambda: attribute("d.io/x") >= "1.0.0", "selector-type", 'version("d.io/x") >= '),
    (lambda: gpu.memory >= "40Gi" & gpu.product.contains("x"), "selector-type", "parentheses"),
    (lambda: gpu.product.contains("x") & gpu.memory, "selector-type", "parentheses"),
    (lambda: gpu.product | gpu.memory.exists(), "selector-type", "parentheses"),
    (lambda: gpu.product.exists() & True, "selector-type", "parentheses"),
    (lambda: True | gpu.product.exists(), "selector-type", "parentheses"),
    (lambda: ~gpu.product, "selector-type", "gpu.product.missing()"),
    (lambda: cel(1), "selector-type", "cel('device.driver"),
    (lambda: gpu.memory >= "40GB", "selector-invalid-value", '"40Gi"'),
    (lambda: gpu.memory >= "", "selector-invalid-value", '"40Gi"'),
    (lambda: gpu.memory.between("80Gi", "40Gi"), "selector-invalid-value", "smaller one first"),
    (lambda: gpu.compute_capability >= "9.0", "selector-invalid-value", 'write "9.0.0"'),
    (lambda: gpu.compute_capability >= "v9", "selector-invalid-value", 'write "9.0.0"'),
    (lambda: gpu.driver_version >= "570.86.05", "selector-invalid-value", "570.86.5"),
    (lambda: gpu.driver_version >= "new", "selector-invalid-value", "three numbers"),
    (lambda: gpu.product.matches("("), "selector-invalid-value", "RE2"),
    (lambda: gpu.product.matches("(?=x)"), "selector-invalid-value", "look-around"),
    (lambda: gpu.product == "a\0", "selector-invalid-value", "leave that character out"),
    (lambda: gpu.product.contains("\ud800"), "selector-invalid-value", "leave that character out"),
    (gpu.product.one_of, "selector-invalid-value", "at least one"),
    (lambda: gpu.numa_node == 2**63, "selector-invalid-value", "smaller"),
    (lambda: gpu.numa_node.between(2, 1), "selector-invalid-value", "smaller one first"),
    (lambda: attribute("nodomain"), "selector-invalid-value", 'attribute("gpu.nvidia.com/nodomain")'),
    (lambda: attribute("d.io/no-identifier"), "selector-invalid-value", "gpu.nvidia.com/"),
    (lambda: attribute("a/b/c"), "selector-invalid-value", "gpu.nvidia.com/"),
    (lambda: attribute(3), "selector-invalid-value", "gpu.nvidia.com/"),
    (lambda: version(""), "selector-invalid-value", 'version("gpu.nvidia.com/'),
    (lambda: capacity("memory"), "selector-invalid-value", 'capacity("gpu.nvidia.com/memory")'),
    (lambda: driver("not a driver"), "selector-invalid-value", 'driver("gpu.nvidia.com")'),
    (lambda: driver("x" * 64), "selector-invalid-value", 'driver("gpu.nvidia.com")'),
    (lambda: gpu.memroy, "selector-invalid-value", "gpu.memory"),
    (lambda: gpu.model, "selector-invalid-value", "gpu.product"),
    (lambda: gpu.computeCapability, "selector-invalid-value", "gpu.compute_capability"),
    (lambda: gpu.nvlink_domain, "selector-invalid-value", 'attribute("domain/nvlink_domain")'),
]


@pytest.mark.parametrize(("write", "code", "hint"), MISUSE)
def test_misuse_is_refused_where_it_is_written_with_the_right_spelling(write, code: str, hint: str):
    with pytest.raises(SelectorError) as caught:
        write()
    (problem,) = caught.value.problems
    assert problem.code == code
    assert code in CODES
    assert hint in problem.hint


def test_a_misspelt_name_is_an_attribute_error_too():
    assert not hasattr(gpu, "memroy")
    assert getattr(gpu, "memroy", None) is None


def test_attributes_are_not_hashed_nor_gone_over():
    with pytest.raises(TypeError):
        hash(gpu.product)
    with pytest.raises(TypeError):
        list(gpu.product)


def test_an_attribute_knows_its_qualified_name():
    assert gpu.product.qualified_name == "gpu.nvidia.com/productName"
    assert gpu.pcie_root.qualified_name == "resource.kubernetes.io/pcieRoot"
    assert attribute("d.io/x").qualified_name == "d.io/x"


def test_the_problems_of_raw_cel_are_reported_at_the_path_given():
    problems = cel('device.attributes["a"].x >= ').problems("GpuClaim('a').select")
    assert {(problem.path, problem.code) for problem in problems} == {("GpuClaim('a').select", "cel-syntax")}


def test_raw_cel_without_a_guard_is_a_warning():
    (problem,) = cel('device.attributes["a"].x == 1').problems()
    assert (problem.code, problem.severity) == ("cel-unguarded-read", "warning")


def test_raw_cel_cannot_reach_out_of_its_parentheses():
    selector = cel("true) || (true") & gpu.profile.missing()
    assert not check_expression(selector.expression()).errors
    assert "cel-syntax" in {problem.code for problem in selector.problems()}


def test_raw_cel_that_ends_in_a_comment_does_not_swallow_what_follows():
    selector = cel('device.driver == "x" // why') & ~cel("false // never")
    assert compile_expression(selector.expression()).evaluate(DeviceView("x")) == Match()


def test_a_selector_that_grows_too_long_is_a_problem():
    selector = gpu.product == "x" * 60
    for number in range(120):
        selector = selector | (gpu.product == f"{number:060}")
    assert {problem.code for problem in selector.problems()} == {"cel-too-long"}
