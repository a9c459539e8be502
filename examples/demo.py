"""The demo: one program through synth, placement and the review of a change. `make demo` runs it."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from dra_infra.answers.checking import check
from dra_infra.answers.placing import place_scene
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.catalog import load_fleet
from dra_infra.documents import yaml
from dra_infra.review import render_html, render_text
from dra_infra.review.placement_report import describe
from dra_infra.sources.sides import compile_both

QUICKSTART = Path(__file__).parent / "00-quickstart"
FLEET = "hgx-h100 x 4"
PAGE = Path(".cache/review.html")
# The change under review: a service that grows, and a training job that asks for a whole node.
CHANGE = (('"replicas": 2', '"replicas": 3'), ("count=4", "count=8"))


def main() -> None:
    """Run the demo; what it does is what it prints."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / QUICKSTART.name
        change_program(changed)
        program, head = compile_both(QUICKSTART, changed, base_label="main")
    fleet = load_fleet(FLEET)

    _say("dra-infra synth examples/00-quickstart   (the template that pods get their GPUs from)")
    shown = [each for each in program.objects if each.component == 'GpuClaimTemplate("trainer")']
    print(yaml.write_manifests(each.manifest for each in shown))
    scene = Scene.of(program, fleet=fleet)
    checked = check(scene)
    print(f"validated: {len(program.objects)} objects, {len(checked.problems)} problems")

    _say(f'dra-infra simulate examples/00-quickstart --fleet "{FLEET}"')
    print("\n".join(describe(place_scene(scene, checked))))

    _say("dra-infra review --base main   (the trainer asks for 8 GPUs, the service for one replica more)")
    review = compare(program, head, base_label="main", fleet=fleet)
    print(render_text(review, color=sys.stdout.isatty(), width=shutil.get_terminal_size((110, 24)).columns))

    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render_html(review), encoding="utf-8")
    print(f"the same as a page: {PAGE.resolve()}")
    print(f"done in {time.monotonic() - started:.1f} s")


def change_program(target: Path) -> None:
    """A copy of the quickstart with the change that is reviewed."""
    shutil.copytree(QUICKSTART, target)
    source = target / "__main__.py"
    text = source.read_text()
    for old, new in CHANGE:
        text = text.replace(old, new)
    source.write_text(text)


def _say(command: str) -> None:
    print(f"\n$ {command}\n")


if __name__ == "__main__":
    main()
