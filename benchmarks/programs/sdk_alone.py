"""The floor below ours: N bare components with one bare child each, the same engine, nothing of ours compiled.

What `ours.py` takes beyond this is our own code; what this takes is the SDK, start-up and writing.
"""

import sys

import pulumi
from templates import spec_of

from dra_infra.documents import yaml
from dra_infra.program.synth import synth_function

number = int(sys.argv[1])
selectors = sys.argv[2] == "selectors"
TYPE = "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate"


class Bare(pulumi.ComponentResource):
    def __init__(self, name: str, spec: dict) -> None:
        super().__init__("benchmarks:index:Bare", name, {})
        manifest = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name},
            "spec": spec,
        }
        pulumi.CustomResource(TYPE, name, manifest, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def program() -> None:
    for index in range(number):
        Bare(f"t{index}", spec_of(index, selectors=selectors))


result = synth_function(program)
assert len(result.objects) == number
sys.stdout.write(yaml.write_manifests(each.manifest for each in result.objects))
