from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.gpus import capabilities, capabilities_of, find_products, nearest_product
from dra_infra.catalog.mig import mig_products, mig_profiles_of
from dra_infra.catalog.records import GpuProduct, gpu_products
from dra_infra.catalog.vocabulary import product_memory

PRODUCTS = gpu_products()
SPELLINGS = [
    str.lower,
    str.upper,
    lambda name: name.replace(" ", "-"),
    lambda name: f" {name} ",
]


def test_what_validation_knows_is_what_the_catalogue_knows():
    assert {name: product.memory_mib for name, product in sorted(PRODUCTS.items())} == product_memory()


@pytest.mark.parametrize("name", PRODUCTS)
def test_brand_and_architecture_are_values_that_the_driver_publishes(name):
    published = drivers()["gpu.nvidia.com"].newest.devices["gpu"].attributes
    product = PRODUCTS[name]
    assert product.architecture in published["gpu.nvidia.com/architecture"].values
    assert product.brand is None or product.brand in published["gpu.nvidia.com/brand"].values
    assert product.addressing_mode is None or (
        product.addressing_mode in published["gpu.nvidia.com/addressingMode"].values
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("H100", ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL")),
        ("A100-80GB", ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe")),
        ("B200", ("NVIDIA B200",)),
        ("H200", ("NVIDIA H200", "NVIDIA H200 NVL")),
        ("NVIDIA H200", ("NVIDIA H200",)),
        ("L40", ("NVIDIA L40",)),
        ("T4", ("Tesla T4",)),
        ("h100 pcie", ("NVIDIA H100 PCIe",)),
        ("NVIDIA-H100-80GB-HBM3", ("NVIDIA H100 80GB HBM3",)),
        ("rtx pro 6000", ("NVIDIA RTX PRO 6000 Blackwell Server Edition",)),
        ("H10", ()),
        ("", ()),
    ],
)
def test_names_that_people_write_lead_to_products(text, names):
    assert find_products(text) == names


@given(st.sampled_from(sorted(PRODUCTS)), st.sampled_from(SPELLINGS))
def test_an_nvml_name_is_one_product_in_any_spelling(name, spell):
    assert find_products(spell(name)) == (name,)


@given(st.sampled_from(sorted(PRODUCTS)))
def test_every_short_name_of_a_product_leads_to_it(name):
    for short in PRODUCTS[name].short_names:
        assert name in find_products(short)
        assert nearest_product(f"{short}x")


@given(st.text(max_size=60))
def test_any_text_gives_known_products_or_none(text):
    assert set(find_products(text)) <= set(PRODUCTS)
    assert nearest_product(text) == "" or find_products(nearest_product(text))


@pytest.mark.parametrize(
    ("text", "near"), [("H1000", "H100"), ("NVIDIA H100 80GB HBM2", "NVIDIA H100 80GB HBM3"), ("zzzzzz", "")]
)
def test_a_misspelt_product_gets_the_nearest_name(text, near):
    assert nearest_product(text) == near


def test_capabilities_follow_the_compute_capability():
    assert capabilities_of("Tesla T4") == ("tensor-cores", "mps-multi-user")
    assert "fp8" in capabilities_of("NVIDIA L4")
    assert "fp8" not in capabilities_of("NVIDIA A100-SXM4-80GB")
    assert "nvfp4" in capabilities_of("NVIDIA B200")
    assert capabilities()["nvfp4"].except_
    with pytest.raises(KeyError):
        capabilities_of("NVIDIA H1000")


def test_mig_and_nvlink_of_some_products():
    assert PRODUCTS["NVIDIA A30"].mig_slices == 4
    assert PRODUCTS["NVIDIA H100 NVL"].mig_capable
    assert not PRODUCTS["NVIDIA L40S"].mig_capable
    assert PRODUCTS["NVIDIA GB200"].nvlink == "rack"
    assert PRODUCTS["NVIDIA H100 80GB HBM3"].nvlink == "board"
    assert PRODUCTS["NVIDIA L40S"].nvlink == "none"


def test_products_with_mig_are_those_with_profiles():
    assert set(mig_products()) == {name for name, product in PRODUCTS.items() if product.mig_capable}
    for name in mig_products():
        assert max(profile.compute_slices for profile in mig_profiles_of(name)) == PRODUCTS[name].mig_slices


def test_what_nobody_captured_is_marked_uncertain():
    for product in PRODUCTS.values():
        if product.source.startswith("general knowledge"):
            assert product.memory_mib is None or "memory_mib" in product.uncertain
        for name in product.uncertain:
            assert getattr(product, name) is not None


def test_uncertain_names_a_field():
    with pytest.raises(ValueError, match="not all fields"):
        GpuProduct(
            source="a test of the record",
            architecture="Hopper",
            cuda_compute_capability="9.0.0",
            mig_slices=7,
            short_names=("X",),
            uncertain=("colour",),
        )
