"""For users' own tests: a program's objects by component, where they fit, and what is wrong with them.

```python
import dra_infra as dra

def test_trainer_fits_production():
    assert dra.testing.synth("infra/").claim("trainer").fits("hgx-h100 x 4")
```
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dra_infra.advice.program import check_program
from dra_infra.answers.placing import place_one_claim, place_scene
from dra_infra.answers.scene import Scene
from dra_infra.catalog import load_fleet
from dra_infra.catalog.workload_kinds import load_workload_kinds
from dra_infra.components.known_outputs import text_of
from dra_infra.components.report import collect_problems
from dra_infra.errors import Problem
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import CLAIM_KINDS, ObjectRef, WorkloadKinds
from dra_infra.placement.placement import Growth, JointVerdict, Placement, WorkloadPlacement
from dra_infra.program import synth as engine
from dra_infra.program_objects import Program, ProgramObject

__all__ = [
    "Claim",
    "Fit",
    "GrowthFit",
    "JointFit",
    "SynthesizedProgram",
    "object_name",
    "problems",
    "synth",
]


def synth(
    program: str | Path | Callable[[], Any],
    *,
    project: str | None = None,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    timeout: float = engine.DEFAULT_TIMEOUT,
    kinds: str | Path | None = None,
) -> SynthesizedProgram:
    """Run a program as `dra-infra synth` does.

    Args:
        program: Folder of a Pulumi project, or a function that declares resources.
        project: Of a function, the name of its project: what `pulumi.Config()` reads; None takes `test`.
        stack: Stack whose configuration is read; of a function, the stack's name.
        config: Settings over those of the stack file, by key such as `gpus` or `my-project:gpus`.
        timeout: Seconds that the program may run.
        kinds: File that names kinds of objects that make pods, as for `dra-infra simulate --kinds`.

    Raises:
        ProblemsError: When the file of kinds is malformed.
        ProgramError: When the program raises, does not end, or cannot be found.
    """
    if callable(program):
        made = engine.synth_function(program, project=project, stack=stack, config=config, timeout=timeout)
    else:
        made = engine.synth(program, stack=stack, config=config, timeout=timeout)
    return SynthesizedProgram(made, load_workload_kinds(Path(kinds)) if kinds else None)


def problems() -> AbstractContextManager[list[Problem]]:
    """Collect what components report inside of a `with` block, for tests under `pulumi.runtime.set_mocks`.

    A constructor raises nothing, so that a program hears of all its problems at once: `pytest.raises` around it sees none.

    ```python
    with dra.testing.problems() as found:
        dra.GpuClaimTemplate("trainer", device_class="gpu.nvidia.com", count=99)
    assert [each.code for each in found] == ["too-many-devices"]
    ```
    """
    return collect_problems()


def object_name(component: Any) -> str:
    """Return the name of a component's object as plain text, for tests: `trainer.object_name` is an Output of it.

    ```python
    assert dra.testing.object_name(trainer).startswith("trainer-")
    ```

    Raises:
        LookupError: When the name is only known after `pulumi up`, or the component makes no object of that name.
    """
    name = text_of(getattr(component, "object_name", None))
    if not name:
        raise LookupError(
            f"{type(component).__name__} has no name that is known here: it is made of what `pulumi up` tells"
        )
    return name


@dataclass(frozen=True, slots=True)
class Fit:
    """The placement of pods; true in a test when they find devices, and its text says where, or why not."""

    placement: WorkloadPlacement
    subject: str
    fleet: str

    def __bool__(self) -> bool:
        return self.placement.verdict == "fits"

    def __repr__(self) -> str:
        verdict = self.placement.verdict.replace("-", " ")
        head = f"{self.subject} {verdict} on {self.fleet}"
        if self:
            return f"<{head}: {len(self.placement.nodes)} nodes, alone room for {self.placement.more_pods} more pods>"
        reasons = "; ".join(map(str, self.placement.reasons))
        return f"<{head}: {reasons}>" if reasons else f"<{head}>"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that can take such a pod."""
        return tuple(each.node for each in self.placement.nodes)


@dataclass(frozen=True, slots=True)
class JointFit:
    """The verdict on all workloads at once; true in a test when every order of arrival ends with all pods placed.

    Its text is the verdict with its proof, or with the two orders of which one places all pods and one does not, and by how
    much the node pools of the fleet have to grow.
    """

    joint: JointVerdict
    fleet: str
    growth: Growth | None = None

    def __bool__(self) -> bool:
        return self.joint.verdict == "always"

    def __repr__(self) -> str:
        orders = [
            f"{what}: {order}"
            for what, order in (("all are placed", self.joint.works), ("not all are", self.joint.fails))
            if order is not None and self.joint.verdict == "depends-on-order"
        ]
        grown = [str(self.growth)] if self.growth is not None and self.growth.verdict != "fits-now" else []
        return f"<all workloads on {self.fleet}: {'; '.join([str(self.joint), *orders, *grown])}>"


@dataclass(frozen=True, slots=True)
class GrowthFit:
    """By how much node pools have to grow; true in a test when all workloads fit within their limits.

    Its text says which pools grow, and what that costs, or why no growth is enough.
    """

    growth: Growth
    fleet: str

    def __bool__(self) -> bool:
        return self.growth.fits

    def __repr__(self) -> str:
        return f"<all workloads on {self.fleet}: {self.growth}>"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim or claim template of a program."""

    program: Program
    object: ProgramObject

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The object as plain data."""
        return self.object.manifest

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.object.ref.name

    def fits(self, fleet: str | Fleet) -> Fit:
        """Place a pod with just this claim on *fleet*, such as `"hgx-h100 x 4"`."""
        scene = _scene(fleet, self.program)
        return Fit(
            place_one_claim(scene, self.object.ref),
            str(self.object.component or self.object.ref),
            _name_of(scene),
        )


@dataclass(frozen=True, slots=True)
class SynthesizedProgram:
    """A program after its run.

    Args:
        program: What the run gave.
        kinds: Kinds of objects that make pods; None for those that the catalogue knows.
    """

    program: Program
    kinds: WorkloadKinds | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the program and its objects."""
        return check_program(self.program)

    @property
    def objects(self) -> tuple[Mapping[str, Any], ...]:
        """All objects as plain data, sorted by namespace, kind and name."""
        return tuple(each.manifest for each in self.program.objects)

    def component(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """The objects that the component called *name* makes.

        Raises:
            KeyError: When no component is called so; names the nearest one.
        """
        found = [each.manifest for each in self.program.objects if _component_name(each) == name]
        if not found:
            raise KeyError(
                _not_found("component", name, {_component_name(each) for each in self.program.objects})
            )
        return tuple(found)

    def claim(self, name: str) -> Claim:
        """The claim or claim template of the component called *name*, or whose object is called so.

        Raises:
            KeyError: When there is none; names the nearest one.
        """
        claims = [each for each in self.program.objects if each.ref.kind in CLAIM_KINDS]
        for each in claims:
            if name in (_component_name(each), each.ref.name):
                return Claim(self.program, each)
        raise KeyError(_not_found("claim", name, {_component_name(each) or each.ref.name for each in claims}))

    def fits(self, fleet: str | Fleet, workload: str) -> Fit:
        """Place all pods of the workload object called *workload* on *fleet*.

        Raises:
            KeyError: When no workload with claims is called so.
        """
        placement = self._place(fleet)
        placements = placement.workloads
        for each in placements:
            if workload in (each.owner.name, str(each.owner)):
                return Fit(each, str(each.owner), placement.fleet.name)
        raise KeyError(_not_found("workload with claims", workload, {each.owner.name for each in placements}))

    def fits_all(self, fleet: str | Fleet) -> JointFit:
        """Place all workloads on *fleet* at once, in every order of arrival."""
        placement = self._place(fleet)
        return JointFit(placement.joint, placement.fleet.name, placement.growth)

    def fits_within_limits(self, fleet: str | Fleet) -> GrowthFit:
        """Place all workloads on *fleet*, whose node pools may grow up to their limits.

        Raises:
            ValueError: When the fleet has no node pools.
        """
        placement = self._place(fleet)
        if placement.growth is None:
            raise ValueError(f"{placement.fleet.name} has no node pools; name a fleet file with pools")
        return GrowthFit(placement.growth, placement.fleet.name)

    def _place(self, fleet: str | Fleet) -> Placement:
        scene = _scene(fleet, self.program, self.kinds)
        return place_scene(scene)

    def object(self, kind: str, name: str, namespace: str = "") -> Mapping[str, Any]:
        """The object with this kind and name.

        Raises:
            KeyError: When there is none; names the nearest one.
        """
        wanted = ObjectRef(kind, name, namespace)
        for each in self.program.objects:
            if each.ref == wanted:
                return each.manifest
        raise KeyError(_not_found("object", str(wanted), {str(each.ref) for each in self.program.objects}))


def _component_name(each: ProgramObject) -> str:
    return each.component.name if each.component is not None else ""


def _scene(fleet: str | Fleet, program: Program, kinds: WorkloadKinds | None = None) -> Scene:
    if isinstance(fleet, str):
        fleet = load_fleet(fleet, kubernetes=program.kubernetes, driver=program.driver)
    return Scene.of(program, fleet=fleet, kinds=kinds)


def _name_of(scene: Scene) -> str:
    return scene.fleet.name if scene.fleet is not None else ""


def _not_found(what: str, name: str, known: set[str]) -> str:
    names = sorted(known - {""})
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names)) or 'none'}"
    return f"no {what} is called {name!r}; {hint}"
