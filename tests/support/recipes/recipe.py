"""The recipes: each example with the fleet it runs on, and two changes of its program."""

from __future__ import annotations

from dataclasses import dataclass

Edit = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One example on the real parts.

    Args:
        example: Folder below `examples/`.
        fleet: Hardware, as users name it; a file is one of the example's folder.
        in_place: A change of the program, as (old, new), that only updates the resource `updated`.
        updated: Name of the resource that the first change updates.
        replacing: A change that needs new objects.
        operations: What the engine does to each resource for the second change, by name.
        charts: Name and version of the charts that it installs; stand-ins of them, or the user's own, take their place.
        crds: Files below `crds` of the test data with kinds that the example makes.
        controllers: Whether it makes LeaderWorkerSets or JobSets, for which their own controllers run.
        brings_classes: Whether it makes the classes that a chart brings elsewhere.
        shared: Whether all of its pods use one claim, and so the same devices.
        in_order: Whether devices are taken in the order of the slices; not where a constraint passes over some.
    """

    example: str
    fleet: str
    in_place: Edit
    updated: str
    replacing: Edit
    operations: dict[str, tuple[str, ...]]
    charts: tuple[tuple[str, str], ...] = ()
    crds: tuple[str, ...] = ()
    controllers: bool = False
    brings_classes: bool = False
    shared: bool = False
    in_order: bool = True

    def __str__(self) -> str:
        return self.example


REPLACED = ("create-replacement", "replace", "delete-replaced")
"""A new object first, the old one last."""

REPLACED_DELETE_FIRST = ("delete-replaced", "replace", "create-replacement")
"""The old object first: what the provider does to kinds of its own list whose name stays."""

ROLLED = ("update",)
"""Changed in place: a Deployment rolls its pods over."""

RECIPES = (
    Recipe(
        example="00-quickstart",
        fleet="hgx-h100 x 2",
        in_place=('"replicas": 2', '"replicas": 3'),
        updated="inference",
        replacing=(
            'GpuClaimTemplate("server", device_class=h100,',
            'GpuClaimTemplate("server", device_class=h100, select=dra.gpu.compute_capability >= "9.0.0",',
        ),
        operations={"server": REPLACED, "inference": ROLLED},
    ),
    Recipe(
        example="01-shared-in-pod",
        fleet="hgx-h100, a100-40gb",
        in_place=('GpuClaimTemplate("shared", ', 'GpuClaimTemplate("shared", labels={"team": "ml"}, '),
        updated="shared",
        replacing=(
            '"image": "registry.example/metrics:1.0"',
            '"image": "registry.example/metrics:1.0", "tty": True',
        ),
        operations={"assistant": REPLACED_DELETE_FIRST},
    ),
    Recipe(
        example="02-two-requests",
        fleet="hgx-h100, a100-40gb",
        in_place=('    "pair",\n', '    "pair",\n    annotations={"example.com/owner": "ml"},\n'),
        updated="pair",
        replacing=('"name": "decode", "image"', '"name": "decode", "tty": True, "image"'),
        operations={"serving": REPLACED_DELETE_FIRST},
    ),
    Recipe(
        example="03-claim-for-two-pods",
        fleet="example x 2",
        in_place=('GpuClaim("cache", ', 'GpuClaim("cache", labels={"team": "ml"}, '),
        updated="cache",
        replacing=(
            '"image": "registry.example/cache:1.0"',
            '"image": "registry.example/cache:1.0", "tty": True',
        ),
        operations={"writer": REPLACED_DELETE_FIRST, "reader": REPLACED_DELETE_FIRST},
        shared=True,
    ),
    Recipe(
        example="04-at-least-40gib",
        fleet="a100-40gb, example",
        in_place=('"image": "registry.example/embedder:1.0"', '"image": "registry.example/embedder:1.1"'),
        updated="embedder",
        replacing=('dra.gpu.memory >= "40Gi"', 'dra.gpu.memory >= "39Gi"'),
        operations={"large": REPLACED, "embedder": ROLLED},
    ),
    Recipe(
        example="05-a100-80gb",
        fleet="a100-40gb, a100-80gb, hgx-h100",
        in_place=('dra.gpu.memory >= "79Gi"', 'dra.gpu.memory >= "80Gi"'),
        updated="a100-80gb",
        replacing=('GpuClaimTemplate("tuner", ', 'GpuClaimTemplate("tuner", count=2, '),
        operations={"tuner": REPLACED, "fine-tune": REPLACED_DELETE_FIRST},
    ),
    Recipe(
        example="06-four-h100",
        fleet="a100-80gb, hgx-h100 x 2",
        in_place=('compute_capability >= "9.0.0"', 'architecture == "Hopper"'),
        updated="h100",
        replacing=("count=4", "count=3"),
        operations={"four": REPLACED, "server": ROLLED},
    ),
    Recipe(
        example="07-fallback-ladder",
        fleet="a100-80gb, hgx-h100",
        in_place=('"replicas": 2', '"replicas": 3'),
        updated="server",
        replacing=("count=2", "count=3"),
        operations={"ladder": REPLACED, "server": ROLLED},
    ),
    Recipe(
        example="08-class-of-another-program",
        fleet="a100-80gb, hgx-h100",
        in_place=('"image": "registry.example/server:1.0"', '"image": "registry.example/server:1.1"'),
        updated="server",
        replacing=("count=2", "count=3"),
        operations={"trainer": REPLACED, "server": ROLLED},
    ),
    Recipe(
        example="09-mig-notebook",
        fleet="hgx-h100, a100-80gb mig=1g.10gb*7",
        in_place=('"replicas": 3', '"replicas": 4'),
        updated="jupyter",
        replacing=('profile="1g.10gb"', 'profile="1g.10gb", count=2'),
        operations={"notebook": REPLACED, "jupyter": ROLLED},
    ),
    Recipe(
        example="10-four-over-nvlink",
        fleet="a100-80gb, hgx-h100 x 2",
        in_place=('"image": "registry.example/server:1.0"', '"image": "registry.example/server:1.1"'),
        updated="server",
        replacing=("gpus=4", "gpus=2"),
        operations={"four": REPLACED, "server": ROLLED},
    ),
    Recipe(
        example="11-aks-platform",
        fleet="a100-80gb",
        in_place=('"compute_domains": False', '"compute_domains": False, "log_verbosity": 6'),
        updated="gpus-driver",
        replacing=('GpuClaimTemplate("shared", ', 'GpuClaimTemplate("shared", count=2, '),
        operations={"shared": REPLACED, "assistant": ROLLED},
        charts=(("gpu-operator", "26.7.0"), ("dra-driver-nvidia-gpu", "0.4.1")),
    ),
    Recipe(
        example="12-time-slicing",
        fleet="hgx-h100 x 2",
        in_place=('"image": "registry.example/server:1.0"', '"image": "registry.example/server:1.1"'),
        updated="server",
        replacing=('"Short"', '"Long"'),
        operations={"turns": REPLACED, "server": ROLLED},
        shared=True,
    ),
    Recipe(
        example="13-mps",
        fleet="a100-40gb, hgx-h100",
        in_place=('"quarters",\n', '"quarters",\n    labels={"team": "ml"},\n'),
        updated="quarters",
        replacing=('"18Gi"', '"16Gi"'),
        operations={"quarters": REPLACED, "server": ROLLED},
        shared=True,
    ),
    Recipe(
        example="14-nvl72-training",
        fleet="gb200-nvl72 driver=0.4",
        in_place=('NvlinkGroup("rack", ', 'NvlinkGroup("rack", labels={"team": "ml"}, '),
        updated="rack",
        replacing=("PODS = 18", "PODS = 9"),
        operations={"rack": REPLACED, "pretrain": REPLACED_DELETE_FIRST},
        crds=("dra-driver-nvidia-gpu-v0.4.1/resource.nvidia.com_computedomains.yaml",),
    ),
    Recipe(
        example="15-gpu-with-nic",
        fleet="fleet.yaml",
        in_place=('"image": "registry.example/server:1.0"', '"image": "registry.example/server:1.1"'),
        updated="server",
        replacing=('DeviceRequest("gpu", ', 'DeviceRequest("gpu", select=dra.gpu.memory >= "79Gi", '),
        operations={"near": REPLACED, "server": ROLLED},
        in_order=False,
    ),
    Recipe(
        example="16-example-driver",
        fleet="example x 2",
        in_place=('GpuClaimTemplate("single", ', 'GpuClaimTemplate("single", labels={"team": "ml"}, '),
        updated="single",
        replacing=('interval="Long"', 'interval="Short"'),
        operations={"strategies": REPLACED, "two-ways": ROLLED},
    ),
    Recipe(
        example="17-node-plugin",
        fleet="hgx-h100",
        in_place=('fleet="hgx-h100"', 'fleet="hgx-h100", labels={"release": "2"}'),
        updated="gpus",
        replacing=("count=2", "count=3"),
        operations={"server": REPLACED, "inference": ROLLED},
        brings_classes=True,
    ),
    Recipe(
        example="18-node-pools",
        fleet="fleet.yaml",
        in_place=('GpuClaimTemplate("small", ', 'GpuClaimTemplate("small", labels={"team": "research"}, '),
        updated="small",
        replacing=("count=4", "count=8"),
        operations={"large": REPLACED, "server": ROLLED},
    ),
    Recipe(
        example="19-team-platform",
        fleet="hgx-h100 x 4, a100-80gb mig=1g.10gb*7",
        in_place=('"replicas": 3', '"replicas": 4'),
        updated="notebooks",
        replacing=("GROUPS, GPUS = 1, 8", "GROUPS, GPUS = 2, 4"),
        operations={"server": REPLACED, "serve": ROLLED},
        controllers=True,
    ),
    Recipe(
        example="22-node-pool-from-zero",
        # Its own pools have no node yet.
        fleet="hgx-h100 x 4",
        in_place=('"replicas": 1', '"replicas": 2'),
        updated="server",
        replacing=("count=4", "count=8"),
        operations={"four": REPLACED, "server": ROLLED},
    ),
)
