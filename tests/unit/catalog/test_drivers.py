from __future__ import annotations

import pytest

from dra_infra.catalog.drivers import drivers, newest, read_pins
from dra_infra.catalog.vocabulary import mig_profiles, misnomers, product_memory
from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import Semver
from dra_infra.kubernetes.api.names import is_dns_label, is_dns_subdomain, split_qualified_name
from dra_infra.kubernetes.cel import check_expression

GPU = "gpu.nvidia.com"
RELEASES = [release for driver in drivers().values() for release in driver.releases]


def names(line, device, section="attributes"):
    return set(getattr(drivers()[GPU].by_line[line].devices[device], section))


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_release_publishes_what_an_api_server_takes(release):
    assert release.source
    assert is_dns_subdomain(release.driver)
    for name, device in release.devices.items():
        assert is_dns_label(name)
        for qualified in (*device.attributes, *device.capacity):
            assert split_qualified_name(qualified)[0]
        for entry in device.attributes.values():
            assert entry.type != "quantity"
            if entry.type == "version" and entry.value:
                assert Semver.parse(str(entry.value))
        assert {entry.type for entry in device.capacity.values()} <= {"quantity"}


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_shipped_class_compiles_and_names_its_driver(release):
    for shipped in release.classes:
        assert check_expression(shipped.expression).errors == ()
        assert f"device.driver == '{release.driver}'" in shipped.expression


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("gpu.nvidia.com/index", {"25.3"}),
        ("gpu.nvidia.com/pcieBusID", {"25.3", "25.8"}),
        ("resource.kubernetes.io/pciBusID", {"25.12", "0.4", "0.5"}),
        ("resource.kubernetes.io/pcieRoot", {"25.3", "25.8", "25.12", "0.4", "0.5"}),
        ("resource.kubernetes.io/numaNode", {"0.5"}),
        ("gpu.nvidia.com/addressingMode", {"25.12", "0.4", "0.5"}),
        ("gpu.nvidia.com/partition2", {"0.5"}),
        ("gpu.nvidia.com/nvlinkDomain", set()),
        ("gpu.nvidia.com/model", set()),
    ],
)
def test_attributes_of_whole_gpus_by_release(name, lines):
    assert {line for line in drivers()[GPU].by_line if name in names(line, "gpu")} == lines


def test_types_of_devices_by_release():
    assert list(drivers()[GPU].by_line["25.8"].devices) == ["gpu", "mig"]
    assert list(drivers()[GPU].by_line["25.12"].devices) == ["gpu", "mig", "vfio"]
    assert "gpu.nvidia.com/numa" in names("0.4", "vfio")
    assert "gpu.nvidia.com/numa" not in names("0.5", "vfio")
    assert "gpu.nvidia.com/architecture" not in names("0.5", "vfio")


@pytest.mark.parametrize(
    ("line", "section", "name", "presence"),
    [
        ("25.12", "capacity", "gpu.nvidia.com/memory", "always"),
        ("0.4", "capacity", "gpu.nvidia.com/memory", "sometimes"),
        ("25.3", "attribute", "resource.kubernetes.io/pcieRoot", "always"),
        ("25.8", "attribute", "resource.kubernetes.io/pcieRoot", "sometimes"),
        ("0.5", "attribute", "gpu.nvidia.com/productName", "always"),
        ("0.5", "attribute", "gpu.nvidia.com/index", "never"),
    ],
)
def test_presence_on_whole_gpus(line, section, name, presence):
    assert drivers()[GPU].by_line[line].devices["gpu"].presence(section, name) == presence


def test_what_is_said_instead_is_published_by_another_release():
    for release in RELEASES:
        for device in release.devices.values():
            for name, entry in device.attributes.items():
                if entry.instead:
                    others = [
                        each
                        for other in drivers()[release.driver].releases
                        for each in other.devices.values()
                    ]
                    assert any(entry.instead in each.attributes for each in others), name


def test_gpus_of_amd_are_published_as_the_documentation_of_1_0_shows():
    device = read_pins("gpu.amd.com=1.0").releases["gpu.amd.com"].devices["gpu"]
    own = ("type", "deviceID", "driverVersion", "numaNode", "partitionProfile", "productName")
    standard = ("resource.kubernetes.io/pciBusID", "resource.kubernetes.io/pcieRoot")
    assert set(device.attributes) == {*(f"gpu.amd.com/{name}" for name in own), *standard}
    assert set(device.capacity) == {f"gpu.amd.com/{name}" for name in ("memory", "computeUnits", "simdUnits")}


@pytest.mark.parametrize(
    ("text", "driver", "line"),
    [
        ("newest", GPU, "0.5"),
        ("25.8", GPU, "25.8"),
        ("v25.8.1", GPU, "25.8"),
        ("25.3.0-rc.4", GPU, "25.3"),
        ("0.4.1", GPU, "0.4"),
        ("25.8", "compute-domain.nvidia.com", "25.8"),
        ("25.8", "gpu.example.com", "0.4"),
        ("gpu.example.com=0.2", "gpu.example.com", "0.2"),
        ("gpu.example.com=0.2", GPU, "0.5"),
        ("25.12, gpu.example.com = 0.3", "gpu.example.com", "0.3"),
    ],
)
def test_pins_name_a_release_line(text, driver, line):
    assert read_pins(text).releases[driver].line == line


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("26.4", "25.12"),
        ("nonsense", "25.12"),
        ("gpu.example.com=9.9", "0.4"),
        ("gpu.amd.com=9.9", "1.0"),
        ("gpu.unknown.com=1.0", GPU),
        ("=", GPU),
    ],
)
def test_releases_that_are_not_known_are_refused(text, known):
    with pytest.raises(InvalidSpecError) as caught:
        read_pins(text)
    (problem,) = caught.value.problems
    assert problem.code == "unknown-driver-release"
    assert known in problem.hint


def test_equal_pins_are_one_object():
    assert read_pins("newest") is read_pins("0.5") is newest()


def test_what_a_misnomer_means_is_published():
    published = {name for device in newest().devices for name in (*device.attributes, *device.capacity)}
    for entry in misnomers("attributes"):
        if entry.attribute:
            name = entry.attribute if "/" in entry.attribute else f"{entry.domain}/{entry.attribute}"
            assert name in published
        if entry.use.startswith("device."):
            assert check_expression(entry.use).errors == ()
    assert {entry.use for entry in misnomers("domains")} <= set(drivers())


def test_products_and_profiles():
    assert product_memory()["NVIDIA H100 80GB HBM3"] == 81559
    assert product_memory()["NVIDIA GB10"] is None
    assert list(product_memory()) == sorted(product_memory())
    assert {"1g.10gb", "1g.10gb+me", "1g.24gb-me", "7g.141gb"} <= set(mig_profiles())
    assert not any(profile.count(".") > 1 and not profile.endswith(".all") for profile in mig_profiles())
