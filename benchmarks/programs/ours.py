"""N claim templates by components, checked, as `dra-infra synth` does it: NUMBER, then `selectors` or `counts`."""

import sys

from templates import CLASS, count_of, memory_of

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.documents import yaml
from dra_infra.program.synth import synth_function

number = int(sys.argv[1])
selectors = sys.argv[2] == "selectors"


def program() -> None:
    h100 = dra.GpuDeviceClass(CLASS, select=dra.gpu.product.contains("H100"))
    for index in range(number):
        select = dra.gpu.memory >= memory_of(index) if selectors else None
        dra.GpuClaimTemplate(f"t{index}", device_class=h100, count=count_of(index), select=select)


result = synth_function(program)
assert not [problem for problem in check_program(result) if problem.severity == "error"]
assert len(result.objects) == number + 1
sys.stdout.write(yaml.write_manifests(each.manifest for each in result.objects))
