"""Five selectors on 1,000 devices, ten times, with our engine or with one of cel-python's two runners."""

import json
import sys

from dra_infra.catalog import load_fleet

SELECTORS = [
    'device.driver == "gpu.nvidia.com"',
    'device.attributes["gpu.nvidia.com"].architecture == "Hopper"',
    'device.attributes["gpu.nvidia.com"].productName.contains("H100")',
    'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"',
    'device.attributes["gpu.nvidia.com"].uuid != "" && device.attributes["gpu.nvidia.com"].brand == "Nvidia"',
]
ROUNDS = 10
devices = [
    (slice_.spec.driver, device)
    for slice_ in load_fleet("hgx-h100 x 125").slices
    for device in slice_.spec.devices or []
]
assert len(devices) == 1000

matches = 0
if sys.argv[1] == "ours":
    from dra_infra.kubernetes.cel import DeviceView, compile_expression
    from dra_infra.kubernetes.cel.evaluate import Match

    programs = [compile_expression(text) for text in SELECTORS]
    views = [DeviceView(driver, device.attributes or {}, device.capacity or {}) for driver, device in devices]
    for _ in range(ROUNDS):
        matches += sum(isinstance(program.evaluate(view), Match) for view in views for program in programs)
else:
    import celpy

    runner_class = celpy.CompiledRunner if sys.argv[1] == "compiled" else celpy.InterpretedRunner
    environment = celpy.Environment(runner_class=runner_class)
    runners = [environment.program(environment.compile(text)) for text in SELECTORS]
    data = [
        celpy.json_to_cel(
            {
                "driver": driver,
                "attributes": {
                    driver: {name: value.string or "" for name, value in (device.attributes or {}).items()}
                },
            }
        )
        for driver, device in devices
    ]
    for _ in range(ROUNDS):
        matches += sum(bool(runner.evaluate({"device": device})) for device in data for runner in runners)
assert matches == ROUNDS * len(SELECTORS) * len(devices), matches
print(json.dumps({"matches": matches}))
