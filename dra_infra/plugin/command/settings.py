"""The settings of the node plugin, all of them: help, environment, file and docs/node-plugin.md are made of this table."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

from dra_infra.plugin.command.setting_values import (
    ADDRESS,
    BACK_END,
    DRIVER,
    DURATION,
    FILE,
    NODE,
    PATH,
    SWITCH,
    UID,
    WORDS,
    Address,
    Kind,
    one_of,
)

PREFIX: Final = "DRA_INFRA_PLUGIN_"


@dataclass(frozen=True, slots=True)
class About:
    """What is said of a setting beside its name, type and value.

    Args:
        kind: How its values look.
        meaning: What it does.
        default: In words, where the value itself does not say it.
        back_end: The only back end that it is for.
        variable: In the environment, where it is not called as all others are.
    """

    kind: Kind
    meaning: str
    default: str = ""
    back_end: str = ""
    variable: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the plugin was told."""

    back_end: Annotated[
        str,
        About(
            BACK_END,
            "What knows the devices: sim makes up those of a fleet, nvml asks NVIDIA's library, and a class of one's own knows others.",
        ),
    ]
    node_name: Annotated[str, About(NODE, "The node that it runs on.", variable="NODE_NAME")]
    fleet: Annotated[
        str,
        About(
            WORDS,
            "Whose devices the node has, as for simulate: hgx-h100, or a file.",
            default="must be given for sim",
            back_end="sim",
        ),
    ] = ""
    driver: Annotated[
        str,
        About(
            DRIVER,
            "The driver's name in slices and classes.",
            default="the fleet's, gpu.nvidia.com, or your class's",
        ),
    ] = ""
    pod_uid: Annotated[
        str,
        About(
            UID,
            "The pod that it runs in: tells the two instances of a rolling update apart.",
            default="none",
            variable="POD_UID",
        ),
    ] = ""
    kubelet_root: Annotated[Path, About(PATH, "The kubelet's folder (its --root-dir).")] = Path(
        "/var/lib/kubelet"
    )
    state_folder: Annotated[
        Path | None,
        About(PATH, "Where the checkpoint is.", default="plugins/DRIVER in the kubelet's folder"),
    ] = None
    cdi_folder: Annotated[Path, About(PATH, "Where the container runtime reads CDI specs.")] = Path(
        "/var/run/cdi"
    )
    metadata_files: Annotated[
        bool, About(SWITCH, "Whether containers get files that describe their devices.", default="off")
    ] = False
    kubeconfig: Annotated[
        Path | None,
        About(
            FILE,
            "How the API server is reached.",
            default="KUBECONFIG, ~/.kube/config, or the pod's account",
        ),
    ] = None
    log_format: Annotated[
        str,
        About(one_of("text", "json"), "How lines of the log look.", default="text on a terminal, else json"),
    ] = ""
    log_level: Annotated[
        str, About(one_of("error", "warning", "info", "debug"), "What is logged: this, and what is worse.")
    ] = "info"
    metrics_address: Annotated[
        Address | None,
        About(ADDRESS, "Where metrics for Prometheus are served, at /metrics.", default="not served"),
    ] = None
    health_address: Annotated[
        Address | None,
        About(ADDRESS, "Where liveness and readiness are served, as grpc.health.v1.", default="not served"),
    ] = None
    driver_root: Annotated[
        Path,
        About(
            PATH,
            "Folder of NVIDIA's driver, as the plugin sees it.",
            back_end="nvml",
            variable="NVIDIA_DRIVER_ROOT",
        ),
    ] = Path("/")
    driver_root_on_host: Annotated[
        Path | None,
        About(PATH, "The same folder on the node.", default="the same path", back_end="nvml"),
    ] = None
    toolkit: Annotated[
        Path | None,
        About(
            PATH,
            "The program nvidia-ctk, which knows what containers need; /dev/null to do without.",
            default="looked for",
            back_end="nvml",
        ),
    ] = None
    sim_commands: Annotated[
        Path | None,
        About(
            PATH,
            "The file in which `dra-infra-plugin sim` says what happens to devices.",
            default="sim-commands.json in the state folder",
            back_end="sim",
        ),
    ] = None
    mig_delay: Annotated[
        float, About(DURATION, "How long making a MIG device takes.", default="0s", back_end="sim")
    ] = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting, as it is given.

    Args:
        name: As `Settings` has it.
        about: What is said of it.
        default: In words; empty where it must be given.
    """

    name: str
    about: About
    default: str

    @property
    def flag(self) -> str:
        """On the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """In the environment."""
        return self.about.variable or PREFIX + self.name.upper()

    @property
    def key(self) -> str:
        """In the file."""
        first, *others = self.name.split("_")
        return first + "".join(each.capitalize() for each in others)


@cache
def all_settings() -> tuple[Setting, ...]:
    """Every setting, in the order of the help."""
    hints = get_type_hints(Settings, include_extras=True)
    return tuple(_described(each, hints[each.name].__metadata__[0]) for each in fields(Settings))


def _described(each: Field[Any], about: About) -> Setting:
    value = "" if each.default is MISSING else str(each.default)
    return Setting(name=each.name, about=about, default=about.default or value)
