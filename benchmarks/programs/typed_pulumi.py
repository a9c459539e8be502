"""N claim templates by the vendor's typed classes, under the SDK's mocks; written as YAML."""

import asyncio
import sys

import pulumi
import yaml
from pulumi.runtime.stack import run_pulumi_func
from templates import spec_of

number = int(sys.argv[1])
selectors = sys.argv[2] == "selectors"

asyncio.set_event_loop(asyncio.new_event_loop())
found = []


class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict]:
        found.append(args.inputs)
        return args.name, args.inputs

    def call(self, _args: pulumi.runtime.MockCallArgs) -> dict:
        return {}


pulumi.runtime.set_mocks(Mocks(), preview=True)

import pulumi_kubernetes as k8s  # noqa: E402  (resources of the module level need the mocks)


def typed(spec: dict) -> dict:
    """The spec in the spelling of the typed classes."""
    request = spec["spec"]["devices"]["requests"][0]
    exactly = dict(request["exactly"])
    exactly["device_class_name"] = exactly.pop("deviceClassName")
    return {"spec": {"devices": {"requests": [{"name": request["name"], "exactly": exactly}]}}}


def program() -> None:
    for index in range(number):
        k8s.resource.v1.ResourceClaimTemplate(
            f"t{index}", metadata={"name": f"t{index}"}, spec=typed(spec_of(index, selectors=selectors))
        )


asyncio.get_event_loop().run_until_complete(run_pulumi_func(program))
assert len(found) == number
yaml.dump_all(found, sys.stdout, Dumper=yaml.CSafeDumper)
