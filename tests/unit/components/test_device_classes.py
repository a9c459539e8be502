from __future__ import annotations

import dra_infra as dra
from dra_infra.program.synth import synth_function


def selectors_of(**arguments: object) -> list[str]:
    program = synth_function(lambda: dra.GpuDeviceClass("h100", **arguments))  # type: ignore[arg-type]
    assert program.problems == ()
    (found,) = program.objects
    assert found.ref.name == "h100"
    return [each["cel"]["expression"] for each in found.manifest["spec"]["selectors"]]


def test_a_class_of_nvidia_gpus_takes_whole_gpus_of_the_driver_first():
    first, second = selectors_of(select=dra.gpu.product.contains("H100"))
    assert first.startswith('device.driver == "gpu.nvidia.com"')
    assert 'type == "gpu"' in first
    assert 'contains("H100")' in second


def test_a_class_of_another_driver_selects_by_the_driver_alone():
    assert selectors_of(driver="gpu.example.com") == ['device.driver == "gpu.example.com"']


def test_the_object_may_have_a_name_of_its_own():
    program = synth_function(
        lambda: dra.GpuDeviceClass("h100", object_name="nvidia-h100", labels={"tier": "1"})
    )
    assert program.objects[0].manifest["metadata"] == {"name": "nvidia-h100", "labels": {"tier": "1"}}
