"""Secrets that somebody wrote into objects, programs and files by mistake: whoever reads a report looks for them.

The real command runs on a real repository. What is planted is in `tests/support/planted_secrets.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.attacks.conftest import Loot
from tests.support.forge.local_forge import LocalForge, serving
from tests.support.planted_kinds import KINDS, PLACES, PLACES_OF_TOKENS, Filled, Kind, claim, filled
from tests.support.planted_secrets import PLANTED, Manifest, Planted, made_up

pytestmark = pytest.mark.e2e

COMMAND = Path(sys.executable).parent / "dra-infra"
FORMS = ("markdown", "html", "json", "sarif", "junit")
VALIDATION_FORMS = ("text", "json", "sarif", "junit", "github")
TOKEN = "token-of-the-job-0123"
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")


@dataclass(frozen=True)
class Answer:
    """What a command printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Workplace:
    """A repository, and the command in it."""

    root: Path

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", self.root, *IDENTITY, *arguments], check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--message", "a state")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Answer:
        ended = subprocess.run(
            [COMMAND, *arguments],
            cwd=self.root,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in ended.stderr
        return Answer(ended.returncode, ended.stdout, ended.stderr)

    def review(self, *arguments: str) -> tuple[Answer, dict[str, str]]:
        """The review, and all that a reader of it may see, by where."""
        files = [part for form in FORMS for part in (f"--{form}", f"report.{form}")]
        answer = self.run("review", *arguments, *files)
        written = {form: self.root / f"report.{form}" for form in FORMS}
        seen = {"text": answer.out, "stderr": answer.err}
        return answer, seen | {form: file.read_text() for form, file in written.items() if file.exists()}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """An empty repository."""
    made = Workplace(tmp_path / "repository")
    made.root.mkdir()
    made.git("init", "--initial-branch", "main")
    return made


def take(loot: Loot, seen: Mapping[str, str], planted: Planted, *sides: str) -> None:
    """Take what *seen* shows of a secret."""
    for where, text in seen.items():
        for side in sides:
            loot.add_if(planted.shown(text, side), f"{planted.name} in {where}")


def with_note(manifest: Manifest, note: str) -> Manifest:
    """The object with something in it that changes beside the secret."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {"note": note}}}


def documents(side: str) -> str:
    """Each secret in an object that changes, in one that changes beside it, and in one that is of one side only."""
    found = []
    for index, planted in enumerate(PLANTED):
        found += [
            planted.manifest(f"changed-{index}", planted.secret(side)),
            with_note(planted.manifest(f"same-{index}", planted.secret("same")), side),
            planted.manifest(f"{'gone' if side == 'old' else 'made'}-{index}", planted.secret(side)),
        ]
    return yaml.safe_dump_all(found)


def test_no_report_of_manifests_shows_a_planted_secret(place: Workplace, loot: Loot) -> None:
    place.write("k/all.yaml", documents("old"))
    place.commit()
    place.write("k/all.yaml", documents("new"))
    answer, seen = place.review("k")
    assert answer.code == 0, answer.err
    assert set(seen) == {"text", "stderr", *FORMS}
    for planted in PLANTED:
        take(loot, seen, planted, "old", "new", "same")
    changes = {each["object"]["name"]: json.dumps(each) for each in json.loads(seen["json"])["changes"]}
    for index, planted in enumerate(PLANTED):
        # The attacker would have a change pass unseen.
        loot.add_if("[secret] (changed)" not in changes[f"changed-{index}"], f"{planted.name} changed unseen")
        loot.add_if("(changed)" in changes[f"same-{index}"], f"{planted.name} said to be changed")


BROKEN = ("a: [", "\t- {", "'", "a: b: c", "<<: 7", "!!python/object:x {}", "\x01", '"')


def test_no_error_about_a_file_shows_the_secret_on_its_line(place: Workplace, loot: Loot) -> None:
    place.write("k/a.yaml", "kind: ConfigMap\n")
    place.commit()
    lines = [each for each in PLANTED if "\n" not in each.secret("new")]
    for index, planted in enumerate(lines):
        text = f"kind: ConfigMap\ndata:\n  password: {planted.secret('new')} {BROKEN[index % len(BROKEN)]}\n"
        place.write(f"k/{index}.yaml", text)
    seen = {}
    for command in (["review", "k"], ["validate", "k"], ["validate", "k", "--format", "github"]):
        answer = place.run(*command)
        assert "yaml-" in answer.out + answer.err
        seen |= {f"{' '.join(command)}, out": answer.out, f"{' '.join(command)}, err": answer.err}
    for planted in lines:
        take(loot, seen, planted, "new")


CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: %(quoted)s
      exactly: {deviceClassName: gpu, allocationMode: %(quoted)s}
    config:
    - requests: [%(quoted)s]
      opaque: {driver: %(quoted)s, parameters: {apiVersion: %(quoted)s}}
"""


def shapes() -> list[Planted]:
    """Those that are known by how they are written, in whatever field they stand."""
    names = {"JWT", "github", "gitlab", "slack", "stripe", "nvidia NGC", "npm", "aws key id", "hugging face"}
    found = [each for each in PLANTED if each.name in names]
    assert len(found) == len(names)
    return found


def test_validate_hides_what_is_written_like_a_secret(place: Workplace, loot: Loot) -> None:
    for index, planted in enumerate(shapes()):
        text = json.dumps(planted.secret("new"))
        place.write(f"k/{index}.yaml", CLAIM % {"quoted": text})
    for form in VALIDATION_FORMS:
        answer = place.run("validate", "k", "--format", form)
        assert answer.code == 1
        for planted in shapes():
            take(loot, {f"{form}, out": answer.out, f"{form}, err": answer.err}, planted, "new")


PROGRAM = """\
import os, subprocess, sys
import dra_infra as dra
import pulumi
import pulumi_kubernetes as k8s

k8s.core.v1.ConfigMap("plain", metadata={"name": "plain"}, data={"a": "%s"})
"""

RAISES = {
    "what it raises": """raise ValueError(
        "cannot connect to postgres://ada:@0@@db.example/x, nor to Host=db;Username=ada;Password=@1@;Encrypt=True",
        {"Authorization": "Bearer @2@"}, {"user": "ada", "password": "@3@"}, ["serve", "--password", "@4@"],
        "-----BEGIN PRIVATE " "KEY-----\\n@5@\\n-----END PRIVATE " "KEY-----", "curl -u ada:@6@ https://x.example",
    )""",
    "a command that fails": 'subprocess.run(["false", "--password", "@0@", "--token=@1@"], check=True)',
    "how it exits": 'sys.exit("token=@0@, api_key: @1@")',
    "what it printed": 'print("api_key: @0@", {"password": "@1@"}, flush=True); os._exit(3)',
    "its components": 'dra.GpuClaim("password=@0@", device_class=7); dra.GpuClaim("c", device_class="https://ada:@1@@host")',
}


@pytest.mark.parametrize("what", RAISES)
def test_no_message_of_a_failing_program_shows_its_secret(place: Workplace, loot: Loot, what: str) -> None:
    secrets = [made_up(f"{what} {index}", 14) for index in range(7)]
    line = RAISES[what]
    for index, secret in enumerate(secrets):
        line = line.replace(f"@{index}@", secret)
    place.write("Pulumi.yaml", "name: app\nruntime: python\n")
    place.write("__main__.py", PROGRAM % "old")
    place.commit()
    place.write("__main__.py", PROGRAM % "new" + line + "\n")
    answer, seen = place.review("--base", "HEAD")
    assert answer.code in {1, 2}
    # What the program itself prints passes through where a user runs it.
    commands = ["synth", "simulate", "explain x"] if what == "what it raises" else []
    for command in commands:
        fleet = ["--fleet", "hgx-h100"] if command != "synth" else []
        answer = place.run(*command.split(), *fleet)
        assert answer.code != 0
        assert "program-raised" in answer.err
        seen |= {f"{command}, out": answer.out, f"{command}, err": answer.err}
    for where, text in seen.items():
        loot.add_secrets(where, text, *secrets)


TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
    },
}


def with_claim(pod: Manifest) -> Manifest:
    """The pod with a GPU, so that it is placed."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    containers = [{**each, "resources": {"claims": [{"name": "gpu"}]}} for each in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": claims, "containers": containers}}


def test_simulate_and_explain_show_no_planted_secret(place: Workplace, loot: Loot) -> None:
    made = {
        f"pod-{index}": each.manifest(f"pod-{index}", each.secret("new"))
        for index, each in enumerate(PLANTED)
    }
    pods = {name: with_claim(each) for name, each in made.items() if each["kind"] == "Pod"}
    place.write("k/all.yaml", yaml.safe_dump_all([TEMPLATE, *pods.values()]))
    name = next(iter(pods))
    for command in (["simulate", "k", "--json"], ["explain", f"pod/{name}", "k"]):
        answer = place.run(*command, "--fleet", "hgx-h100")
        assert name in answer.out, answer.err
        for planted in PLANTED:
            take(loot, {f"{command} out": answer.out, f"{command} err": answer.err}, planted, "new")


def kinds(side: str) -> list[tuple[Kind, Filled, Manifest]]:
    """Each kind of public rules in an object, each in another place than the one before it."""
    found = []
    for index, kind in enumerate(KINDS):
        places = [*PLACES.values(), *(PLACES_OF_TOKENS.values() if kind.is_token else ())]
        example = filled(kind.line, f"{kind.rule} {side}")
        manifest = places[index % len(places)](example.line)
        metadata = {**manifest["metadata"], "name": f"kind-{index}"}
        found.append((kind, example, {**manifest, "metadata": metadata}))
    return found


def take_kinds(loot: Loot, seen: Mapping[str, str], *sides: str) -> None:
    """Take the kinds of secrets that *seen* shows."""
    for side in sides:
        for kind, example, _ in kinds(side):
            for where, text in seen.items():
                loot.add_if(bool(example.shown(text)), f"{kind.rule} in {where}")


def test_no_report_shows_a_secret_of_a_kind_that_public_rules_find(place: Workplace, loot: Loot) -> None:
    place.write("k/all.yaml", yaml.safe_dump_all(each for *_, each in kinds("old")))
    place.commit()
    place.write("k/all.yaml", yaml.safe_dump_all(each for *_, each in kinds("new")))
    answer, seen = place.review("k")
    assert len(json.loads(seen["json"])["changes"]) == len(KINDS), answer.err
    take_kinds(loot, seen, "old", "new")


def test_validate_hides_the_secret_of_an_expression(place: Workplace, loot: Loot) -> None:
    # Each expression is wrong at its end, so that each is quoted.
    lines = [
        "device.attributes['a'].password == '@@' && nope",
        "'@@' != device.attributes['a'].apiKey + 1",
        "password('@@')",
    ]
    secrets = [made_up(line, 12) for line in lines]
    expressions = [line.replace("@@", secret) for line, secret in zip(lines, secrets, strict=True)]
    tokens = [(kind, filled(kind.line, kind.rule)) for kind in KINDS if kind.is_token]
    expressions += [f"device.driver == {json.dumps(example.line)} && 1" for _, example in tokens]
    place.write("k/all.yaml", yaml.safe_dump_all(map(claim, expressions)))
    place.commit()
    seen = {}
    for form in VALIDATION_FORMS:
        answer = place.run("validate", "k", "--format", form)
        seen |= {f"{form}, out": answer.out, f"{form}, err": answer.err}
        assert "undeclared reference" in answer.out + answer.err
    seen |= place.review("k")[1]
    for where, text in seen.items():
        loot.add_secrets(where, text, *secrets)
        for kind, example in tokens:
            loot.add_if(bool(example.shown(text)), f"{kind.rule} in {where}")


def test_no_message_of_a_failing_program_shows_a_secret_of_a_kind(place: Workplace, loot: Loot) -> None:
    place.write("Pulumi.yaml", "name: app\nruntime: python\n")
    place.write("__main__.py", PROGRAM % "old")
    place.commit()
    for kind, example, _ in kinds("program"):
        place.write(
            "__main__.py",
            PROGRAM % "new" + f"raise ValueError({example.line!r}, {{'a': {example.line!r}}})\n",
        )
        if KINDS.index(kind) % 60 == 0:
            answer, seen = place.review("--base", "HEAD")
            assert answer.code in {1, 2}
            for where, text in seen.items():
                loot.add_if(bool(example.shown(text)), f"{kind.rule} in {where}")


def texts(value: object) -> Iterator[str]:
    """All texts in plain JSON data."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def test_a_posted_comment_shows_no_planted_secret(place: Workplace, loot: Loot) -> None:
    place.write("k/a.yaml", "kind: ConfigMap\n")
    place.commit()
    place.write("k/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    place.review("k")
    # Somebody between the two commands wrote into the file. A secret that nothing stands beside must be known by its form.
    planted_here = {each.name: each for each in (*PLANTED[:20], *shapes())}.values()
    found = [(each, text) for each in planted_here for text in texts(each.manifest("x", each.secret("new")))]
    lines = [text for each, text in found if each in shapes() or text != each.secret("new")]
    place.write("report.markdown", (place.root / "report.markdown").read_text() + "\n\n".join(lines))
    with serving(LocalForge(accounts={TOKEN: ("bot", True)})) as forge:
        answer = place.run(
            *("comment", "report.markdown", "--forge", "github", "--api", forge.github),
            *("--repository", forge.repository, "--number", str(forge.number)),
            environment={"GITHUB_TOKEN": TOKEN},
        )
        assert answer.code == 0, answer.err
        (posted,) = forge.comments
    assert posted["body"].startswith("<!-- dra-infra")
    for planted in PLANTED:
        take(loot, {"comment": posted["body"], "out": answer.out, "err": answer.err}, planted, "new")
