"""The tools that an agent may call: what each takes, how much of it, and the command that answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from dra_infra.agent_tools.confined_command import LONGEST
from dra_infra.errors import Problem, ProgramError

LONGEST_TEXT: Final = 4 * 2**20
"""Characters of manifests that a call has in it, as of a file of a project."""

_MOST_PATHS: Final = 200
_MOST_WORDS: Final = 100
_WORD: Final = 300

Word = Annotated[str, Field(max_length=_WORD, pattern=r"^[^\x00-\x1f-][^\x00-\x1f]*$")]
"""A value of an option: one line, and no option itself."""

Path = Annotated[str, Field(min_length=1, max_length=1000)]
Fleet = Annotated[str, Field(max_length=_WORD, pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,:=*+_-]*$")]
"""Hardware by name; the name of a file has a field of its own."""

MANIFESTS: Final = "manifests.yaml"
"""The file in which manifests of a call are, in every report."""


class _Arguments(BaseModel):
    """Arguments of a tool, with names in camel case."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, frozen=True, hide_input_in_errors=True
    )


class _Cluster(_Arguments):
    """Arguments of every tool that judges objects."""

    kubernetes: Word | None = Field(
        None, description="Kubernetes minor of the cluster, 1.34 to 1.37. Without it, see the tool."
    )
    gates: dict[Word, bool] = Field(
        default_factory=dict,
        max_length=_MOST_WORDS,
        description="Feature gates that the cluster sets itself.",
    )
    driver: Word | None = Field(
        None,
        description="Release of NVIDIA's DRA driver: 25.3, 25.8, 25.12, 0.4 or 0.5. Default: the newest.",
    )

    def words(self) -> Iterator[str]:
        """Yield the options of the command."""
        if self.kubernetes is not None:
            yield f"--kubernetes={self.kubernetes}"
        for name, value in self.gates.items():
            yield f"--gate={name}={str(value).lower()}"
        if self.driver is not None:
            yield f"--driver={self.driver}"


class _Objects(_Cluster):
    """Objects: as text, or as files of the folder of the server."""

    manifests: str | None = Field(
        None,
        max_length=LONGEST_TEXT,
        description="Kubernetes objects as YAML or JSON, with --- between documents.",
    )
    paths: list[Path] = Field(
        default_factory=list,
        max_length=_MOST_PATHS,
        description="Files and folders of manifests, relative to the folder of the server. Links are not followed.",
    )


class Placed(_Objects):
    """Objects, and the hardware that they are placed on."""

    fleet: Fleet | None = Field(
        None,
        description="Hardware by name: 'hgx-h100 x 4'. The tool catalog lists names with section fleets.",
    )
    fleet_file: Path | None = Field(
        None,
        description="A file with nodes, ResourceSlices and DeviceClasses, or node pools, in place of fleet.",
    )
    snapshot: Path | None = Field(
        None, description="A file that `dra-infra snapshot` wrote, in place of fleet. What runs there counts."
    )

    def words(self) -> Iterator[str]:
        """Yield the options of the command."""
        yield from super().words()
        if self.fleet is not None:
            yield f"--fleet={self.fleet}"


class Validate(_Objects):
    """Check Kubernetes manifests of DRA (resource.k8s.io and the claims of pods) as the API server does.

    Call this before you show or apply a ResourceClaim, ResourceClaimTemplate, DeviceClass or a pod that uses one. Without kubernetes, the
    oldest and the newest supported minor are checked.
    """

    strict: bool = Field(default=False, description="Count warnings as failures.")

    def words(self) -> Iterator[str]:
        """Yield the options of the command."""
        yield from super().words()
        if self.strict:
            yield "--strict"


class Simulate(Placed):
    """Say on which nodes the pods of manifests fit, and which devices they get, as the scheduler's allocator would choose.

    Needs one of fleet, fleetFile and snapshot. Kubernetes is the newest minor by default.
    """

    scale: dict[Word, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict,
        max_length=_MOST_WORDS,
        description="What if workloads had so many pods: {'deployment/inference': 40}.",
    )
    timeout: float = Field(default=LONGEST, ge=0.1, le=LONGEST, description="Seconds for the search.")

    def words(self) -> Iterator[str]:
        """Yield the options of the command."""
        yield from super().words()
        yield from (f"--scale={name}={count}" for name, count in self.scale.items())
        yield f"--timeout={self.timeout}"


class Explain(Placed):
    """Say why a pod or claim gets no devices, with the smallest changes that fit; or what the code of a problem means.

    For a code give name alone: 'cel-unguarded-read'. For an object give its manifests and one of fleet, fleetFile and snapshot, or a
    snapshot alone for what runs there.
    """

    name: Word = Field(description="pod/x, deployment/x, claim/x, template/x, or the code of a problem.")
    namespace: Word | None = Field(None, description="Namespace of the object.")
    deep: bool = Field(default=False, description="Also try two changes at once.")
    timeout: float = Field(default=20.0, ge=0.1, le=LONGEST, description="Seconds for the search.")

    def words(self) -> Iterator[str]:
        """Yield the options of the command."""
        yield from super().words()
        if self.namespace is not None:
            yield f"--namespace={self.namespace}"
        if self.deep:
            yield "--deep"
        yield f"--timeout={self.timeout}"


class Review(Placed):
    """Compare manifests with what they were: what changes, what breaks or restarts, and whether the result fits.

    manifests or paths are the new state, baseManifests or basePaths the old one.
    """

    base_manifests: str | None = Field(None, max_length=LONGEST_TEXT, description="The objects as they were.")
    base_paths: list[Path] = Field(
        default_factory=list,
        max_length=_MOST_PATHS,
        description="Files and folders of the objects as they were.",
    )


class Migrate(Placed):
    """Turn requests to device plugins (nvidia.com/gpu) and objects of older DRA versions into claims of today.

    The report lists what is lost or has to be decided. The changed files follow it; nothing is written.
    """

    whole_gpus: bool = Field(
        default=False,
        description="nvidia.com/gpu is a whole GPU: the device plugin shares none, and hides no MIG device.",
    )
    mig_profile: Word | None = Field(
        None, description="What nvidia.com/gpu is with the plugin's strategy single: 1g.10gb."
    )
    plugin_config: Path | None = Field(
        None, description="A file with the configuration of NVIDIA's device plugin."
    )
    to: Literal["claims", "bridge"] = Field(
        default="claims",
        description="claims, or bridge: classes that serve the resources of pods as they are.",
    )
    plan: bool = Field(
        default=False, description="Plan the cut-over of the nodes of a fleet or snapshot, by phases."
    )

    def words(self) -> Iterator[str]:
        """Yield the options of the command."""
        yield from super().words()
        if self.whole_gpus:
            yield "--whole-gpus"
        if self.mig_profile is not None:
            yield f"--mig-profile={self.mig_profile}"
        yield f"--to={self.to}"
        if self.plan:
            yield "--plan"


class Catalog(_Arguments):
    """Print what is known of GPUs, MIG profiles, drivers, fleets, machines, charts and systems, with sources."""

    section: Literal["gpus", "mig", "drivers", "fleets", "machines", "charts", "systems"] | None = Field(
        None, description="Without one, the list of sections."
    )
    name: Word | None = Field(None, description="Name of an entry of the section, as people write it: H100.")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Args:
        name: Its name, which is that of the command.
        arguments: What it takes.
        schemas: Files of the schemas that its answer has one of.
    """

    name: str
    arguments: type[_Arguments]
    schemas: Sequence[tuple[str, str]]

    @property
    def description(self) -> str:
        """The description that the agent reads."""
        return " ".join((self.arguments.__doc__ or "").split())

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        schema = self.arguments.model_json_schema(by_alias=True)
        return {key: value for key, value in schema.items() if key not in ("title", "description")}

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the report, as the package ships it."""
        read = [
            json.loads((files(home) / "schemas" / name).read_text("utf-8")) for home, name in self.schemas
        ]
        return read[0] if len(read) == 1 else {"type": "object", "oneOf": read}

    def read_arguments(self, arguments: Mapping[str, Any]) -> _Arguments:
        """Return the arguments of a call.

        Raises:
            ProgramError: `unknown-argument`, `missing-argument`, `wrong-type` or `call-too-large`, for all at once.
        """
        try:
            return self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise ProgramError([_problem_of(each) for each in error.errors()[:_MOST_WORDS]]) from None


def _problem_of(error: Mapping[str, Any]) -> Problem:
    """Return a wrong argument as a problem; the value is not in it, for it may be long or secret."""
    kind = str(error["type"])
    path = ".".join(str(each)[:_WORD] for each in error["loc"]) or "arguments"
    code = _CODES.get(kind, "wrong-type")
    return Problem(
        path=path,
        code=code,
        message=_MESSAGES.get(kind, error["msg"]),
        hint="write it as the tool's schema says",
    )


_CODES: Final = {
    "dict_too_long": "call-too-large",
    "extra_forbidden": "unknown-argument",
    "missing": "missing-argument",
    "string_too_long": "call-too-large",
    "too_long": "call-too-large",
}
"""Codes by the kind of pydantic's error."""

_MESSAGES: Final = {
    "extra_forbidden": "there is no such argument",
    "missing": "is not given",
    "string_pattern_mismatch": "has a character that it may not have; files have arguments of their own",
}

_CLI: Final = "dra_infra.cli"

TOOLS: Final = {
    each.name: each
    for each in (
        Tool("validate", Validate, [(_CLI, "validate-v1.json")]),
        Tool("simulate", Simulate, [(_CLI, "simulate-v1.json")]),
        Tool("explain", Explain, [(_CLI, "explain-v1.json"), (_CLI, "code-v1.json")]),
        Tool("review", Review, [("dra_infra.review", "review-v1.json")]),
        Tool("migrate", Migrate, [(_CLI, "migrate-v1.json")]),
        Tool("catalog", Catalog, [(_CLI, "catalog-v1.json")]),
    )
}
"""All tools by name."""
