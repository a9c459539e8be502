"""A scene: everything that one question is about, put together once (ADR 21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.errors import Problem
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Release, WorkloadKinds
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program_objects import Locate, Program, ProgramObject
from dra_infra.provenance import Provenance
from dra_infra.target import NEWEST_DRIVER, ClusterTarget


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """The objects of a program that its cluster has already, by URN. Admission is not asked about these again.

    Args:
        same: Those that stay as they are.
        changed: Those that change in place. New pods and claims are made from them.
    """

    same: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """The objects, the hardware, what runs there, and whose rules count.

    Args:
        program: The objects, with the problems of the run that made them.
        fleet: The hardware, with its DeviceClasses; None where none is named, and then nothing is placed.
        target: The cluster. Placement needs one release: of several the newest counts.
        running: What runs in the cluster already.
        kinds: Kinds of objects that make pods.
        locate: Where a field is written, by the position of its object and its path; None takes the object's place.
        warnings: About the options that the scene was read with.
        deployed: The objects that the cluster has already.
    """

    program: Program
    fleet: Fleet | None = None
    target: ClusterTarget
    running: Running = field(default=NOTHING_RUNS, repr=False)
    kinds: WorkloadKinds = field(default_factory=workload_kinds, repr=False)
    locate: Locate | None = None
    warnings: tuple[Problem, ...] = ()
    deployed: Deployed = Deployed()

    @classmethod
    def of(
        cls,
        program: Program,
        *,
        fleet: Fleet | None = None,
        running: Running = NOTHING_RUNS,
        kinds: WorkloadKinds | None = None,
        locate: Locate | None = None,
        deployed: Deployed | None = None,
    ) -> Scene:
        """Return the scene of a program on the minor of its stack, or on the newest one where the stack names none.

        DeviceClasses that files of the project stand in for are those of the fleet.

        Args:
            program: The objects.
            fleet: The hardware.
            running: What runs in the cluster already.
            kinds: Kinds of objects that make pods; None takes those that the catalogue knows.
            locate: Where a field is written.
            deployed: The objects that the cluster has already; None takes those that run there, as if each changed in place.

        Raises:
            InvalidSpecError: For gates of the program that the minor does not have, as `ClusterTarget.releases`.
        """
        release = program.release
        target = ClusterTarget(kubernetes=program.kubernetes or release.minor, gates=program.gates)
        if deployed is None:
            running_urns = {each.urn for each in program.objects if each.ref.stored in running.objects}
            deployed = Deployed(changed=frozenset(running_urns))
        with_classes = fleet.with_classes(program.stand_in_classes) if fleet is not None else None
        return cls(
            program=program,
            fleet=with_classes,
            target=target,
            running=running,
            kinds=kinds or workload_kinds(),
            locate=locate,
            deployed=deployed,
        )

    @classmethod
    def of_manifests(
        cls,
        manifests: Iterable[Mapping[str, Any]],
        *,
        fleet: Fleet | None = None,
        kubernetes: str | None = None,
        gates: Mapping[str, bool] = MappingProxyType({}),
        driver: str = NEWEST_DRIVER,
        kinds: WorkloadKinds | None = None,
    ) -> Scene:
        """Return the scene of objects as plain data, on a minor or on the newest one.

        Args:
            manifests: The objects, in any order.
            fleet: The hardware.
            kubernetes: Kubernetes minor, such as `1.37`.
            gates: Feature gates that the cluster sets otherwise than its minor does.
            driver: Releases of the drivers whose attributes count. A fleet has its own: give `load_fleet` the same.
            kinds: Kinds of objects that make pods; None takes those that the catalogue knows.

        Raises:
            InvalidSpecError: For a minor or gates that there are not, as `ClusterTarget.releases`.
        """
        objects = [
            ProgramObject(urn=f"urn:pulumi:manifests::manifests::object::{number:06}", manifest=manifest)
            for number, manifest in enumerate(manifests)
        ]
        objects.sort(key=lambda each: each.sort_key)
        program = Program(
            project="manifests",
            stack="",
            objects=tuple(objects),
            kubernetes=kubernetes,
            gates=gates,
            driver=driver,
        )
        return cls.of(program, fleet=fleet, kinds=kinds)

    @property
    def release(self) -> Release:
        """The release whose API server stores the objects and whose scheduler allocates."""
        return self.target.releases[-1]

    @property
    def provenance(self) -> Provenance:
        """Return the releases, hardware and driver that answers about the scene hold for."""
        is_placed = self.fleet is not None
        return Provenance.of_program(self.program, target=self.target, fleet=self.fleet, is_placed=is_placed)

    @property
    def manifests(self) -> tuple[Mapping[str, Any], ...]:
        """The objects as plain data, in the order of the program."""
        return tuple(each.manifest for each in self.program.objects)

    @property
    def beside(self) -> tuple[Mapping[str, Any], ...]:
        """Namespaces, quotas, queues and claim templates of the cluster that are not the program's."""
        return (*self.running.taken.policies, *self.running.taken.templates)
