"""Hints come from the value that was written, in its quotes, and do not end in the next error."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from dra_infra.advice.objects import validate
from dra_infra.advice.written_values import read_amount
from dra_infra.catalog.vocabulary import product_memory, product_names
from dra_infra.errors import Problem
from dra_infra.output.wording import nearest_in_domain
from dra_infra.target import ClusterTarget

GPU = 'device.attributes["gpu.nvidia.com"]'
API = "resource.k8s.io/v1"
NEWEST = ClusterTarget(kubernetes="1.37")


def a_claim(*expressions: str, of: str = "gpu.nvidia.com") -> dict[str, Any]:
    """A claim whose request has these selectors."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    request = {"name": "gpu", "exactly": {"deviceClassName": of, "selectors": selectors}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ml"},
        "spec": {"devices": {"requests": [request]}},
    }


def told(manifest: dict[str, Any], target: ClusterTarget = NEWEST) -> list[Problem]:
    """Problems of one object, without reads that lack a guard."""
    return [each for each in validate([manifest], target) if each.code != "cel-unguarded-read"]


@pytest.mark.parametrize(
    ("test", "hint"),
    [
        ('productName.startsWith("H100")', 'write .contains("H100")'),
        ('productName.endsWith("H100")', 'write .contains("H100")'),
        ('productName.startsWith("H200")', 'write .contains(" H200")'),
        ('productName.startsWith("B200")', 'write .contains(" B200")'),
        ('productName.startsWith("A10")', 'write == "NVIDIA A10"'),
        ("memoryGB >= 80", 'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("79Gi")) >= 0'),
        ("memoryGB >= 40", 'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'),
        ("memoryGB > 24", 'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("22Gi")) > 0'),
        ("memoryGB == 80", 'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("79Gi")) >= 0'),
        ("memoryGB < 80", 'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) < 0'),
        (
            "memoryMB >= 81920",
            'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("79Gi")) >= 0',
        ),
        ("memory >= 16", 'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("15Gi")) >= 0'),
        ('model == "A100"', f'write {GPU}.productName.contains("A100")'),
        ('migProfile == "3g.40gb"', f'write {GPU}.profile == "3g.40gb"'),
        ('computeCapability == "8.0"', f'write {GPU}.cudaComputeCapability.compareTo(semver("8.0.0")) == 0'),
    ],
)
def test_a_hint_has_the_value_that_was_written(test: str, hint: str):
    assert [each.hint for each in told(a_claim(f"{GPU}.{test}"))] == [hint]


@pytest.mark.parametrize("name", [*product_names()])
@pytest.mark.parametrize("method", ["startsWith", "endsWith", "==", "contains"])
def test_no_hint_repeats_the_text_that_is_wrong(name: str, method: str):
    for word in re.findall(r"[A-Za-z0-9]+", name.removeprefix("NVIDIA ")):
        test = f'productName == "{word}"' if method == "==" else f'productName.{method}("{word}")'
        for each in told(a_claim(f"{GPU}.{test}")):
            assert each.hint != f"did you mean {word!r}?"


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("memoryGB", "80", "79Gi"),
        ("gpuMemoryGiB", "141", "140Gi"),
        ("memory", "80Gi", "79Gi"),
        ("memory", "80GB", "79Gi"),
        ("memory_mb", "24576", "22Gi"),
        ("memory", "23034", "23034Mi"),
        ("memory", "85520809984", "85520809984"),
        ("vram", "48", "44Gi"),
        ("memory", "large", ""),
        ("memory", "", ""),
    ],
)
def test_a_number_is_read_with_the_unit_of_its_name(name: str, text: str, amount: str):
    assert read_amount(name, text) == amount


@pytest.mark.parametrize("memory", sorted({each for each in product_memory().values() if each}))
def test_a_card_is_at_least_what_its_size_becomes(memory: int):
    sold = next(
        (size for size in (16, 24, 40, 48, 80, 96, 141, 180, 192) if memory <= size * 1024 < memory / 0.93), 0
    )
    if sold:
        assert int(read_amount("memoryGB", str(sold)).removesuffix("Gi")) * 1024 <= memory


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize(
    "test", ["Uuid == 'x'", "memoryGB >= 80", "model == 'A100'", "productName.startsWith('H100')"]
)
def test_a_hint_can_be_pasted_where_the_expression_stands(test: str, quote: str):
    expression = f"{GPU}.{test}".replace('"', quote).replace("'", quote)
    for each in validate([a_claim(expression)], NEWEST):
        pasted = each.hint.removeprefix("write ").partition(", or ")[0]
        if quote == "'":
            assert '"' not in pasted
            assert yaml.safe_load(f'"{pasted}"') == pasted
        else:
            assert "'" not in pasted
            assert yaml.safe_load(f"'{pasted}'") == pasted


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("nic.nvidia.com", ""),
        ("net.nvidia.com", ""),
        ("cpu.nvidia.com", ""),
        ("rdma.nvidia.com", ""),
        ("gpus.nvidia.com", "gpu.nvidia.com"),
        ("gpu.nvidia.co", "gpu.nvidia.com"),
        ("migs.nvidia.com", "mig.nvidia.com"),
        ("h10", ""),
    ],
)
def test_a_class_is_like_another_one_by_its_own_part(name: str, near: str):
    hints = [each.hint for each in told(a_claim(of=name)) if each.code == "class-not-known"]
    assert [each.removeprefix("write deviceClassName: ") == near for each in hints] == [bool(near)]
    assert nearest_in_domain(name, ["gpu.nvidia.com", "mig.nvidia.com"], cutoff=0.85) == near


FLAT = {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 2}


def a_template(version: str, request: dict[str, Any]) -> dict[str, Any]:
    """A claim template."""
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1"])
def test_a_version_whose_shape_is_older_is_one_for_migrate(version: str):
    found = told(a_template(version, FLAT))
    assert found
    assert all("dra-infra migrate" in each.hint for each in found if each.code != "version-not-served")
    exactly = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    for each in told(a_template(version, exactly)):
        assert f"write apiVersion: {API}" in each.hint or each.code == "one-of"


def test_a_field_of_a_flat_request_is_written_below_exactly_with_its_value():
    hints = {each.path.rpartition(".")[2]: each.hint for each in told(a_template("v1", FLAT))}
    assert hints["deviceClassName"].startswith("write exactly: {deviceClassName: gpu.nvidia.com}")
    assert hints["count"].startswith("write exactly: {count: 2}")


@pytest.mark.parametrize("field", ["resourceClaimTemplateName", "resourceClaimName"])
def test_the_source_of_a_pods_claim_is_on_the_entry_itself_now(field: str):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "source": {field: "random"}}],
        },
    }
    found = {each.code: each.hint for each in told(pod)}
    assert {"one-of", "unknown-field"} <= found.keys()
    assert all(
        f"write {field}: random in place of source" in found[code] for code in ("one-of", "unknown-field")
    )


def test_an_entry_without_a_claim_is_not_told_to_keep_one_of_two():
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g"}],
        },
    }
    (found,) = [each for each in told(pod) if each.code == "one-of"]
    assert found.hint.startswith("write resourceClaimTemplateName:")
    assert json.loads(found.message.partition("Invalid value: ")[2].partition(": must")[0])["Name"] == "g"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("pcieRoot", "resource.kubernetes.io/pcieRoot"), ("productName", "gpu.nvidia.com/productName")],
)
def test_an_attribute_of_a_constraint_keeps_its_name_in_the_hint(name: str, meant: str):
    manifest = a_claim()
    manifest["spec"]["devices"]["constraints"] = [{"matchAttribute": name}]
    hints = [each.hint for each in told(manifest) if each.path.endswith("matchAttribute")]
    assert hints == [f"write the domain of the attribute before its name: {meant}"]
