"""N claim templates by components, as `dra-infra synth` does it."""

import sys

import dra_infra as dra
from dra_infra.engine.synth import synth_function
from dra_infra.model import yaml
from dra_infra.validation import check_program


def program() -> None:
    h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
    for index in range(int(sys.argv[1])):
        dra.GpuClaimTemplate(f"t{index}", device_class=h100, count=index % 8 + 1)


result = synth_function(program)
assert not check_program(result)
assert len(result.objects) == int(sys.argv[1]) + 1
sys.stdout.write(yaml.write_manifests(each.manifest for each in result.objects))
