from __future__ import annotations

import pytest

OWN = "gpu.nvidia.com"


def in_cel(name, tail="== 'x'", section="attributes"):
    domain, _, identifier = name.rpartition("/")
    return f'device.{section}["{domain or OWN}"].{identifier} {tail}'


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("model", "attribute-not-known", 'device.attributes["gpu.nvidia.com"].productName'),
        ("computeCapability", "attribute-not-known", 'cudaComputeCapability.compareTo(semver("9.0.0")) >= 0'),
        ("migCapable", "attribute-not-known", 'device.attributes["gpu.nvidia.com"].type == "mig"'),
        ("nvlinkDomain", "attribute-not-known", "ComputeDomain"),
        ("nvlink_group", "attribute-not-known", "matchAttribute: gpu.nvidia.com/partition2"),
        ("prodcutName", "attribute-not-known", 'device.attributes["gpu.nvidia.com"].productName'),
        ("productname", "attribute-not-known", 'device.attributes["gpu.nvidia.com"].productName'),
        ("memory", "attribute-is-capacity", 'device.capacity["gpu.nvidia.com"].memory'),
        ("pcieRoot", "attribute-wrong-domain", 'device.attributes["resource.kubernetes.io"].pcieRoot'),
        (
            "nvidia.com/architecture",
            "attribute-wrong-domain",
            'device.attributes["gpu.nvidia.com"].architecture',
        ),
        (
            "gpu.resource.nvidia.com/uuid",
            "attribute-wrong-domain",
            'device.attributes["gpu.nvidia.com"].uuid',
        ),
        ("gpu.nvdia.com/uuid", "attribute-wrong-domain", 'device.attributes["gpu.nvidia.com"].uuid'),
        ("gpu.nvidia.com/partitionable", "attribute-wrong-domain", "known are "),
        ("index", "attribute-other-release", "leave it out"),
        ("pcieBusID", "attribute-other-release", 'device.attributes["resource.kubernetes.io"].pciBusID'),
        ("profile", "attribute-of-other-device", "deviceClassName: mig.nvidia.com"),
        ("resource.kubernetes.io/pcieroot", "attribute-not-known", "resource.kubernetes.io/pcieRoot"),
        ("gpu.example.com/model", "attribute-wrong-domain", "they have "),
    ],
)
def test_names_that_the_class_does_not_publish(inputs, name, code, hint):
    (problem,) = inputs.of_selector(in_cel(name))
    assert (problem.code, problem.path) == (code, inputs.SELECTOR)
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("gpu.nvidia.com/nvswitch-domain", "attribute-not-known", "partition2"),
        ("gpu.nvidia.com/nvlink-group", "attribute-not-known", "ComputeDomain"),
        ("gpu.nvidia.com/memory", "attribute-is-capacity", "matchAttribute: gpu.nvidia.com/productName"),
        (
            "gpu.nvidia.com/pcieRoot",
            "attribute-wrong-domain",
            "matchAttribute: resource.kubernetes.io/pcieRoot",
        ),
        ("gpu.nvidia.com/productnam", "attribute-not-known", "matchAttribute: gpu.nvidia.com/productName"),
        ("gpu.nvidia.com/parentUUID", "attribute-of-other-device", "mig.nvidia.com"),
        ("gpu.nvidia.com/minor", "attribute-other-release", "leave it out"),
    ],
)
@pytest.mark.parametrize("field", ["matchAttribute", "distinctAttribute"])
def test_names_in_constraints(inputs, name, code, hint, field):
    (problem,) = inputs.advice_on(inputs.a_claim(inputs.a_request(), constraints=[{field: name}]))
    assert (problem.code, problem.path) == (code, f"spec.devices.constraints[0].{field}")
    assert hint.replace("matchAttribute", field) in problem.hint or hint in problem.hint


@pytest.mark.parametrize(
    "name",
    [
        "gpu.nvidia.com/productName",
        "resource.kubernetes.io/pcieRoot",
        "resource.kubernetes.io/numaNode",
        "gpu.nvidia.com/uuid",
    ],
)
def test_real_names_in_constraints_pass(inputs, name):
    assert inputs.codes(inputs.a_claim(inputs.a_request(), constraints=[{"matchAttribute": name}])) == []


def test_constraints_look_at_the_requests_that_they_name(inputs):
    requests = [inputs.a_request(name="whole"), inputs.a_request(name="part", of="mig.nvidia.com")]
    parent = {"matchAttribute": "gpu.nvidia.com/parentUUID"}
    assert inputs.codes(inputs.a_claim(*requests, constraints=[{**parent, "requests": ["part"]}])) == []
    assert inputs.codes(inputs.a_claim(*requests, constraints=[parent])) == ["attribute-of-other-device"]


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "dra.net/numaNode",
            "attribute-wrong-domain",
            "numaNode, which dra.net publishes: they are MIG devices and whole GPUs of gpu.nvidia.com",
        ),
        ("gpu.example.com/model", "attribute-wrong-domain", "MIG devices and whole GPUs of gpu.nvidia.com"),
    ],
)
def test_one_constraint_on_several_requests_is_one_problem(inputs, name, code, said):
    requests = [inputs.a_request(name=of[:3], of=of) for of in ("mig.nvidia.com", "gpu.nvidia.com")]
    (problem,) = inputs.advice_on(inputs.a_claim(*requests, constraints=[{"matchAttribute": name}]))
    assert (problem.code, problem.path) == (code, "spec.devices.constraints[0].matchAttribute")
    assert said in problem.message


def test_a_constraint_on_devices_of_two_drivers_names_each(inputs):
    requests = [inputs.a_request(name=of[:3], of=of) for of in ("mig.nvidia.com", "gpu.example.com")]
    constraint = {"matchAttribute": "dra.net/numaNode"}
    problems = inputs.advice_on(inputs.a_claim(*requests, constraints=[constraint]))
    assert [each.message.rpartition(" of ")[2] for each in problems] == ["gpu.nvidia.com", "gpu.example.com"]


def test_a_derived_attribute_is_a_name_of_its_own(inputs):
    derived = [{"name": "gpu.nvidia.com/tray", "expression": 'device.attributes["gpu.nvidia.com"].uuid'}]
    claim = inputs.a_claim(
        inputs.a_request(derivedAttributes=derived), constraints=[{"matchAttribute": "gpu.nvidia.com/tray"}]
    )
    assert inputs.codes(claim) == []


@pytest.mark.parametrize(
    ("driver", "code"),
    [("25.3", []), ("25.8", ["attribute-other-release"]), ("0.5", ["attribute-other-release"])],
)
def test_the_pinned_release_decides_what_is_published(inputs, driver, code):
    assert sorted({each.code for each in inputs.of_selector(in_cel("index", "== 0"), driver=driver)}) == code


@pytest.mark.parametrize(
    ("name", "tail", "old", "new"),
    [
        ("resource.kubernetes.io/numaNode", "== 0", "0.4", "0.5"),
        ("resource.kubernetes.io/pciBusID", "== 'x'", "25.8", "25.12"),
        ("addressingMode", "== 'ATS'", "25.8", "25.12"),
    ],
)
def test_names_that_came_with_a_release(inputs, name, tail, old, new):
    before = {each.code for each in inputs.of_selector(in_cel(name, tail), driver=old)}
    after = {each.code for each in inputs.of_selector(in_cel(name, tail), driver=new)}
    assert before == {"attribute-other-release"}
    assert after <= {"cel-unguarded-read"}


def test_a_guarded_read_is_how_to_write_for_several_releases(inputs):
    read = in_cel("index", "== 0")
    assert inputs.of_selector(f'!has(device.attributes["gpu.nvidia.com"].index) || {read}') == []


def test_a_guard_does_not_make_an_invented_name_right(inputs):
    guarded = f'has(device.attributes["gpu.nvidia.com"].nvlinkDomain) && {in_cel("nvlinkDomain")}'
    assert {each.code for each in inputs.of_selector(guarded)} == {"attribute-not-known"}


@pytest.mark.parametrize(
    "name", ["net.example.org/model", "example.org/nvlinkDomain", "npu.example.org/memory"]
)
def test_nothing_is_claimed_about_drivers_that_are_not_known(inputs, name):
    problems = inputs.of_selector(f"has({in_cel(name, '')}) && {in_cel(name)}", of="elsewhere")
    assert [each.code for each in problems] == ["class-not-known"]


def test_capacity_requests_name_capacities(inputs):
    good = inputs.a_request(capacity={"requests": {"memory": "10Gi"}})
    bad = inputs.a_request(capacity={"requests": {"vram": "10Gi"}})
    assert inputs.codes(inputs.a_claim(good)) == []
    (problem,) = inputs.advice_on(inputs.a_claim(bad))
    assert problem.code == "attribute-not-known"
    assert problem.path == "spec.devices.requests[0].exactly.capacity.requests"


def test_whole_gpus_have_engines_only_with_dynamic_mig(inputs):
    engines = "device.capacity['gpu.nvidia.com'].multiprocessors.isGreaterThan(quantity('14'))"
    assert [each.code for each in inputs.of_selector(engines, of="mig.nvidia.com")] == []
    assert [each.code for each in inputs.of_selector(engines)] == ["cel-unguarded-read"]
