"""Settings of the node plugin, all of them, and the kinds of values that they have.

Help, environment, file and docs/node-plugin.md are made of this table. Each kind of value reads a text and says what
is wrong with another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

from dra_infra.kubernetes.api.names import is_dns_subdomain
from dra_infra.plugin.claims import is_uid

_LONGEST_DRIVER: Final = 63
"""Characters of a driver's name: DriverNameMaxLength of resource.k8s.io."""

_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}
_DURATION: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m|)")
_OWN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z.-]*):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, order=True, slots=True)
class Address:
    """Address that a server listens at."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Kind of a setting's values.

    Args:
        metavar: As help has it.
        read: The value of a text; raises `ValueError` with what is wrong.
        example: What a hint tells to write.
        choices: All values, where there are only a few.
    """

    metavar: str
    read: Callable[[str], Any]
    example: str
    choices: tuple[str, ...] = ()

    def hint(self, text: str) -> str:
        """Hint for a text that is no such value."""
        near = get_close_matches(text[:80].lower(), self.choices, n=1)
        if near:
            return f"did you mean {near[0]}?"
        return f"one of {', '.join(self.choices)}" if self.choices else f"write {self.example}"


def _text_if(is_right: Callable[[str], object], wrong: str) -> Callable[[str], str]:
    """Returns a reader that takes a text as it is, where it is right, and says *wrong* of any other."""

    def read(text: str) -> str:
        if not is_right(text):
            raise ValueError(f"{shortened(text)} {wrong}")
        return text

    return read


def one_of(*choices: str) -> Kind:
    """A word of a few."""
    read = _text_if(choices.__contains__, "is not known")
    return Kind(metavar="|".join(choices), read=read, example=choices[0], choices=choices)


def _is_back_end(text: str) -> bool:
    return text in _BACK_ENDS or _OWN.fullmatch(text) is not None


def _is_driver(text: str) -> bool:
    return len(text) <= _LONGEST_DRIVER and is_dns_subdomain(text)


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(f"{shortened(text)} is neither on nor off")
    return text == "on"


def _path(text: str) -> Path:
    if "\0" in text:
        raise ValueError("no path has a zero byte")
    # The plugin may be started anywhere, and what it says of files is read elsewhere.
    if not text.startswith("/"):
        raise ValueError(f"{shortened(text)} does not start with /")
    return Path(text)


def _file(text: str) -> Path:
    if "\0" in text:
        raise ValueError("no path has a zero byte")
    return Path(text).expanduser()


def _address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    if not match or int(match["port"]) > 65535:
        raise ValueError(f"{shortened(text)} is no address with a port")
    return Address(match["host"].strip("[]") or "::", int(match["port"]))


def _duration(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{shortened(text)} is no time")
    return float(match[1]) * _SECONDS[match[2]]


_BACK_ENDS: Final = ("sim", "nvml")
BACK_END: Final = Kind(
    metavar="sim|nvml|MODULE:CLASS",
    read=_text_if(_is_back_end, "is not known"),
    example="sim",
    choices=(*_BACK_ENDS, "MODULE:CLASS"),
)
SWITCH: Final = Kind(metavar="on|off", read=_switch, example="on", choices=("on", "off"))
DRIVER: Final = Kind(
    metavar="NAME",
    read=_text_if(_is_driver, "is no name of a driver"),
    example="a name like gpu.example.com",
)
NODE: Final = Kind(
    metavar="NAME",
    read=_text_if(is_dns_subdomain, "is no name of a node"),
    example="the Node's metadata.name",
)
UID: Final = Kind(
    metavar="UID", read=_text_if(is_uid, "is no UID of an API server"), example="the Pod's metadata.uid"
)
PATH: Final = Kind(metavar="PATH", read=_path, example="the path from / on")
FILE: Final = Kind(metavar="FILE", read=_file, example="the path of a file")
WORDS: Final = Kind(
    metavar="TEXT",
    read=_text_if(str.isprintable, "has characters that cannot be seen"),
    example="a text in one line",
)
ADDRESS: Final = Kind(
    metavar="HOST:PORT", read=_address, example="127.0.0.1:8080, or :8080 for all addresses"
)
DURATION: Final = Kind(metavar="TIME", read=_duration, example="seconds, or 250ms, 2s, 1m")


def shortened(text: str) -> str:
    """A value as a message quotes it."""
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


PREFIX: Final = "DRA_INFRA_PLUGIN_"


@dataclass(frozen=True, slots=True)
class About:
    """Description of a setting beside its name, type and value.

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
    """Settings of the plugin."""

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
        """Flag of the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Environment variable."""
        return self.about.variable or PREFIX + self.name.upper()

    @property
    def key(self) -> str:
        """Key of the settings file."""
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
