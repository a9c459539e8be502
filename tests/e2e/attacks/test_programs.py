"""A stranger's program reads secrets of the job, rewrites what runs next, and forges the gate: one job, and two jobs."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.support.forge.jobs import GitHub, GitLab
from tests.support.forge.local_forge import LocalForge, serving
from tests.support.forge.runner import clean_environment
from tests.support.forge.sample import Sample, git, make_sample, source_of_dra_infra

pytestmark = pytest.mark.e2e

TOKEN = "ghs_planted0123456789abcdef"
SECRETS = {
    "GITLAB_TOKEN": "planted-gitlab-token",
    "CI_JOB_TOKEN": "planted-ci-job-token",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "planted-id-token",
    "CI_REGISTRY_PASSWORD": "planted-registry-password",
    "PULUMI_ACCESS_TOKEN": "planted-pulumi-token",
    "PULUMI_CONFIG_PASSPHRASE": "planted-passphrase",
    "AWS_SECRET_ACCESS_KEY": "planted-aws-key",
    "KUBECONFIG_DATA": "planted-kubeconfig",
    "LANGCHAIN_API_KEY": "planted-langchain-key",
    "LANGFUSE_SECRET_KEY": "planted-langfuse-key",
}

# Everything that a program can think of, sent where the attacker can read it: in the objects that it declares.
PEEK = """
import glob, os, json
import pulumi_kubernetes as k8s
found = [json.dumps(dict(os.environ))]
places = ["/proc/*/environ", "/proc/*/task/*/environ", "/proc/*/mem"]
for place in places[:2]:
    for file in glob.glob(place):
        try:
            found.append(open(file, "rb").read().decode(errors="replace"))
        except OSError:
            pass
for file in %(files)s:
    try:
        found.append(open(file).read())
    except OSError:
        pass
seen = "".join(found)
loot = sorted({name for name in %(secrets)s if name in seen})
k8s.core.v1.ConfigMap("loot", metadata={"name": "loot"}, data={"loot": json.dumps(loot)})
"""


@dataclass
class Repository:
    """A team's repository with a program, in which a stranger changes it; `home` is the home of who runs the job."""

    top: Path
    home: Path

    @property
    def temp(self) -> Path:
        """Where the command has its temporary folders: those of others are not the attacker's to damage."""
        folder = self.top.parent / "temp"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment(**SECRETS, HOME=str(self.home), TMPDIR=str(self.temp))

    def attack(self, program: str) -> None:
        (self.top / "infra" / "__main__.py").write_text(program)

    def run(
        self, *arguments: str, install: str = "dra_infra.cli.process"
    ) -> subprocess.CompletedProcess[str]:
        script = f"from {install} import main; main()"
        return subprocess.run(
            [sys.executable, "-P", "-c", script, *arguments],
            cwd=self.top,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    top = tmp_path / "repository"
    home = tmp_path / "home"
    (top / "infra").mkdir(parents=True)
    home.mkdir()
    (home / ".netrc").write_text("machine forge.example password planted-netrc\n")
    (top / "infra" / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (top / "infra" / "__main__.py").write_text(
        "import pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': 'old'})\n"
    )
    git(top, "init", "--quiet")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "base")
    with (top / ".git" / "config").open("a") as config:
        config.write('[http]\n\textraheader = "AUTHORIZATION: basic planted-checkout"\n')
    return Repository(top, home)


@pytest.mark.parametrize("way", ["review", "compile"])
def test_secrets_of_the_job_are_read_from_parents_and_files(
    repository: Repository, loot: Loot, tmp_path: Path, way: str
):
    secrets = [*SECRETS.values(), "planted-netrc", "planted-checkout"]
    files = [str(repository.home / ".netrc"), "../.git/config", str(repository.top / ".git" / "config")]
    # Links that a pull request commits, at the top and beside the program.
    for folder in (repository.top, repository.top / "infra"):
        for name, target in {
            "home": repository.home,
            "netrc": repository.home / ".netrc",
            "g": "../.git",
        }.items():
            (folder / name).symlink_to(target if name != "g" or folder != repository.top else ".git")
        files += [str(folder / name) for name in ("home/.netrc", "netrc", "g/config")]
    repository.attack(PEEK % {"files": files, "secrets": secrets})
    if way == "review":
        done = repository.run("review", "infra", "--format", "json")
    else:
        done = repository.run("compile", "infra", "--output", str(tmp_path / "head.json"))
    assert done.returncode == 0, done.stderr
    answer = done.stdout if way == "review" else (tmp_path / "head.json").read_text()
    assert "loot" in answer
    loot.add_secrets("what the program declares", answer, *secrets)


def test_the_command_that_runs_next_is_rewritten(repository: Repository, loot: Loot, tmp_path: Path):
    package = Path(__file__).parents[3] / "dra_infra"
    targets = [
        package / "cli" / "comment.py",
        Path(sys.prefix) / "bin" / "dra-infra",
        Path(sys.prefix) / "lib" / "python3.11" / "site-packages" / "planted.pth",
        repository.home / ".bashrc",
        repository.top / ".git" / "hooks" / "post-checkout",
        repository.top / ".git" / "config",
        tmp_path / "outside",
    ]
    before = {each: each.read_bytes() if each.exists() else None for each in targets}
    # Appending nothing: a run on code that is not confined leaves no trace, but for files that were not there.
    program = (
        "import json\nimport pulumi_kubernetes as k8s\ngot = []\n"
        f"for target in {[*map(str, targets)]!r}:\n"
        "    try:\n        open(target, 'ab').close()\n        got.append(target)\n    except OSError:\n        pass\n"
        "k8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'got': json.dumps(got)})\n"
    )
    repository.attack(program)
    done = repository.run("review", "infra", "--format", "json")
    assert done.returncode == 0, done.stderr
    for target, content in before.items():
        loot.add_if(str(target) in done.stdout, f"the right to write {target.name}")
        if content is None and target.exists():
            target.unlink()


def test_a_child_that_stays_replaces_the_report(repository: Repository, loot: Loot, tmp_path: Path):
    report = tmp_path / "review.md"
    mark = tmp_path / "alive"
    program = (
        "import os, sys, time\nimport pulumi_kubernetes as k8s\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n    os.setsid()\n"
        f"    sys.stdout = sys.stderr = open(os.devnull, 'w')\n"
        "    for _ in range(3000):\n        time.sleep(0.01)\n        try:\n"
        f"            open({str(mark)!r}, 'w').close()\n            if os.path.exists({str(report)!r}):\n"
        f"                open({str(report)!r}, 'w').write('approved')\n        except OSError:\n            pass\n"
        "k8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': 'new'})\n"
    )
    repository.attack(program)
    # Even where the user opens the folder: whatever stays behind has ended when the report is written.
    done = repository.run("review", "infra", "--markdown", str(report), "--allow", f"write:{tmp_path}")
    assert done.returncode == 0, done.stderr
    loot.add_if("approved" in report.read_text(), "a report of its own")
    loot.add_if(_still_runs(str(mark)), "a process that outlives the review")


def _still_runs(mark: str) -> bool:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "cmdline").read_text(errors="replace"):
                return True
        except OSError:
            continue
    return False


# It stays behind and gives the base's answer what the head's says; and it writes to whatever pipe of ours it finds.
FORGE_ANSWER = """
import glob, os, sys, time
import pulumi_kubernetes as k8s
k8s.core.v1.ConfigMap('c', metadata={{'name': 'c'}}, data={{'a': 'new'}})
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    for _ in range(1000):
        time.sleep(0.01)
        # Nowhere else: where nothing holds it back, it would damage what others have there.
        answers = glob.glob({temp!r} + "/dra-infra-*/answer.json*")
        for own in answers:
            try:
                text = open(own).read()
                if '"new"' in text:
                    for other in answers:
                        open(other, "w").write(text)
            except OSError:
                pass
    os._exit(0)
for link in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        number = link.split("/")[2]
        # Not those of whoever runs this test.
        ours = "dra_infra.program" in open(f"/proc/{{number}}/cmdline").read() and number != str(os.getpid())
        if ours and os.readlink(link).startswith("pipe:"):
            descriptor = os.open(link, os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, b'\\n{{"project": "app", "stack": "dev", "objects": []}}')
    except OSError:
        pass
"""


def test_the_answer_of_the_base_is_forged(repository: Repository, loot: Loot):
    repository.attack(FORGE_ANSWER.format(temp=str(repository.temp)))
    for _ in range(4):
        done = repository.run("review", "infra", "--format", "json", "--fail-on", "change")
        if not done.stdout:
            loot.add("a review that never came")
            continue
        answer = json.loads(done.stdout)
        loot.add_if(done.returncode != 1, f"an exit code {done.returncode} for a change")
        actions = [each["action"] for each in answer["changes"]]
        loot.add_if(actions not in (["changed"], ["replaced"]), f"a review that shows {actions}")


@pytest.mark.parametrize("kind", ["manifests", "chart"])
def test_a_head_of_another_kind_hides_what_it_takes_away(
    repository: Repository, loot: Loot, tmp_path: Path, kind: str
):
    head = tmp_path / "head.json"
    assert repository.run("compile", "infra", "--output", str(head)).returncode == 0
    data = json.loads(head.read_text())
    program = {**data["program"], "objects": []}
    data |= {"kind": kind, "program": None if kind == "manifests" else program}
    data["files"] = (
        {"a.yaml": "YXBpVmVyc2lvbjogdjEKa2luZDogQ29uZmlnTWFwCm1ldGFkYXRhOiB7bmFtZTogYX0K"}
        if kind == "manifests"
        else {}
    )
    head.write_text(json.dumps(data))
    done = repository.run("review", "infra", "--head", str(head), "--fail-on", "change")
    loot.add_if(done.returncode == 0, "an open gate")
    loot.add_if("compiled-of-another-kind" not in done.stderr, "a review of nothing")


def test_the_head_of_another_stack_is_handed_in(repository: Repository, loot: Loot, tmp_path: Path):
    head = tmp_path / "head.json"
    assert repository.run("compile", "infra", "--stack", "dev", "--output", str(head)).returncode == 0
    done = repository.run("review", "infra", "--stack", "prod", "--head", str(head))
    loot.add_if(done.returncode != 2, "a gate for another stack")
    loot.add_if("compiled-of-another-stack" not in done.stderr, "a review of another stack")


# All that a template can print: the files of the chart, links followed, and what it is given.
HELM = f"""#!{sys.executable}
import json, os, sys
found = {{"environment": json.dumps(dict(os.environ)), "values": sys.stdin.read()}}
for folder, _, names in os.walk(sys.argv[-1], followlinks=True):
    for name in names:
        found[f"f{{len(found)}}"] = open(os.path.join(folder, name), errors="replace").read()
print(json.dumps({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "loot"}}, "data": found}}))
"""


@pytest.mark.parametrize("kind", ["manifests", "a folder", "a chart", "a chart at the top", "values"])
@pytest.mark.parametrize("way", ["compile", "review"])
def test_links_in_manifests_and_charts_show_files_of_the_machine(
    repository: Repository, loot: Loot, tmp_path: Path, kind: str, way: str
):
    top = repository.top
    helm = repository.home / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text(HELM)
    helm.chmod(0o755)
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: %s}\n"
    (repository.home / "secret.yaml").write_text(manifest % "planted-in-home")
    (top / ".git" / "secret.yaml").write_text(manifest % "planted-in-git")
    folder = top / "charts"
    arguments = []
    if kind == "manifests":
        folder = top / "manifests"
    elif kind == "a chart at the top":
        folder = top
    elif kind == "values":
        arguments = ["--values", str(top / "values.yaml")]
        (top / "values.yaml").symlink_to(repository.home / "secret.yaml")
    folder.mkdir(exist_ok=True)
    (folder / "a.yaml").write_text(manifest % "new")
    if "chart" in kind or kind == "values":
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
    if kind in ("manifests", "a chart"):
        (folder / "home.yaml").symlink_to(repository.home / "secret.yaml")
        (folder / "git.yaml").symlink_to("../.git/secret.yaml")
    if kind == "a folder":
        folder = top / "out"
        folder.symlink_to(repository.home)
    output = tmp_path / "head.json"
    name = str(folder.relative_to(top))
    environment = {**repository.environment, "PATH": f"{helm.parent}:{repository.environment['PATH']}"}
    last = ["--format", "json"] if way == "review" else ["--output", str(output)]
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-c", "from dra_infra.cli.process import main; main()"),
            *(way, name, *arguments, *last),
        ],
        cwd=top,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    answer = done.stdout + done.stderr
    if output.exists():
        answer += output.read_text()
        files = json.loads(output.read_text())["files"].values()
        answer += "".join(base64.b64decode(each).decode() for each in files)
    # Where it is not refused, the rest is there all the same.
    assert done.returncode == 2 or "new" in answer, answer
    loot.add_secrets(
        "what is made of it",
        answer,
        "planted-in-home",
        "planted-in-git",
        "planted-checkout",
        *SECRETS.values(),
    )


def test_the_base_is_kept_from_answering(repository: Repository, loot: Loot):
    program = (
        "import glob, resource\nimport pulumi_kubernetes as k8s\n"
        "for file in glob.glob('/proc/[0-9]*/cmdline'):\n    try:\n"
        "        if 'dra_infra.program' in open(file).read():\n"
        "            resource.prlimit(int(file.split('/')[2]), resource.RLIMIT_NOFILE, (0, 0))\n"
        "    except OSError:\n        pass\n"
        "import os\n"
        "for number in range(max(2, os.getpid() - 20), os.getpid() + 5):\n    try:\n"
        "        if number != os.getpid() and os.getpgid(number) in (number, os.getppid()):\n"
        "            resource.prlimit(number, resource.RLIMIT_NOFILE, (0, 0))\n    except OSError:\n        pass\n"
        "k8s.core.v1.ConfigMap('other', metadata={'name': 'other'}, data={'a': 'new'})\n"
    )
    repository.attack(program)
    done = repository.run("review", "infra", "--format", "json", "--fail-on", "change")
    loot.add_if(done.returncode == 0, "an open gate")
    loot.add_if(not done.stdout, "a review that never came")
    loot.add_if("counts as empty" in done.stdout, "a base that counts as empty")
    loot.add_if("base-not-run" in done.stdout, "a base without an answer")
    loot.add_if('"deleted"' not in done.stdout, "a review that hides what it takes away")


def test_a_metadata_service_and_a_daemon_are_asked(repository: Repository, loot: Loot, tmp_path: Path):
    asked: list[str] = []
    web = socket.create_server(("127.0.0.1", 0))
    daemon = socket.socket(socket.AF_UNIX)
    # A path for a socket is short.
    path = f"/tmp/dra-infra-attack-{os.getpid()}.sock"
    daemon.bind(path)
    daemon.listen()
    waiting = [
        threading.Thread(target=_accept, args=(server, asked, name), daemon=True)
        for name, server in (("the metadata service", web), ("the daemon", daemon))
    ]
    for each in waiting:
        each.start()
    port = web.getsockname()[1]
    addresses = f"((socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_UNIX, {path!r}))"
    program = (
        f"import socket\nimport pulumi_kubernetes as k8s\nfor family, address in {addresses}:\n"
        "    try:\n        socket.socket(family).connect(address)\n    except OSError:\n        pass\n"
        "k8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': 'new'})\n"
    )
    repository.attack(program)
    try:
        done = repository.run("review", "infra")
    finally:
        for server in (web, daemon):
            # Closing alone would leave the threads waiting, with the ports.
            server.shutdown(socket.SHUT_RDWR)
            server.close()
        for each in waiting:
            each.join()
        Path(path).unlink()
    assert done.returncode == 0, done.stderr
    for each in asked:
        loot.add(f"a connection to {each}")


def _accept(server: socket.socket, asked: list[str], name: str) -> None:
    try:
        connection, _ = server.accept()
    except OSError:
        return
    connection.close()
    asked.append(name)


# The two jobs of CI


@pytest.fixture(scope="module")
def action(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_of_dra_infra(tmp_path_factory.mktemp("action") / "dra-infra")


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runners")


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return make_sample(tmp_path / "sample")


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    accounts = {TOKEN: ("github-actions[bot]", True)}
    with serving(LocalForge(accounts=accounts)) as running:
        yield running


@pytest.fixture
def github(sample: Sample, forge: LocalForge, action: Path, runners: Path) -> GitHub:
    return GitHub(sample=sample, forge=forge, action=action, folder=runners, token=TOKEN)


def write(sample: Sample, files: dict[str, str]) -> tuple[str, str]:
    """Commit files to the branch beside a change of the program that no longer fits; its commit and its merge."""
    git(sample.work, "checkout", "--quiet", "branch")
    for name, text in files.items():
        file = sample.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(sample.work, "add", "--all")
    git(sample.work, "commit", "--quiet", "--message", "more")
    return sample.change("count=4", "count=9")


def test_the_job_with_the_token_runs_something_of_the_pull_request(
    github: GitHub, sample: Sample, forge: LocalForge, loot: Loot, tmp_path: Path
):
    mark = tmp_path / "ran"
    runs = f"open({str(mark)!r}, 'a').write(__file__ + chr(10))\n"
    program = (sample.work / "infra" / "__main__.py").read_text()
    names = ("sitecustomize.py", "yaml.py", "typing.py", "venv.py", "infra/json.py", "dra_infra/__init__.py")
    _, merge = write(sample, {**dict.fromkeys(names, runs), "infra/__main__.py": runs + program})
    assert github.compile(merge, arguments=f"--allow\nwrite:{tmp_path}").code == 0
    assert mark.exists()
    mark.unlink()
    run = github.review(merge)
    assert (run.code, run.failed) == (1, "Gate"), run.log
    loot.add_if(mark.exists(), "code of its own in the job with the token")
    loot.add_secrets("the log", run.log, TOKEN)


def forged(github: GitHub, change: dict[str, object]) -> None:
    """What a program that took over job one leaves in place of its artefact."""
    file = github.artifacts / "dra-infra-head" / "dra-infra-head.json"
    data = json.loads(file.read_text())
    for path, value in change.items():
        *parts, last = path.split(".")
        target = data
        for part in parts:
            target = target[part]
        target[last] = value
    file.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "change",
    [
        {"fleet": "hgx-h100 x 1000"},
        {"program.project": "another"},
        {"base": {"objects": []}, "verdict": "open", "exit_code": 0},
        {
            "program.problems": [
                {"path": "p", "code": "count-below-one", "message": "m", "severity": "warning"}
            ]
        },
    ],
)
def test_an_artefact_of_the_attackers_opens_the_gate_or_takes_another_comment(
    github: GitHub, sample: Sample, forge: LocalForge, loot: Loot, change: dict[str, object]
):
    other = forge.put(
        "<!-- dra-infra review another/prod -->\nanother review\n", author="github-actions", program=True
    )
    _, merge = sample.change("count=4", "count=9")
    assert github.compile(merge).code == 0
    forged(github, change)
    run = github.review(merge)
    loot.add_if(run.outputs["verdict"] == "open", "an open gate for what does not fit")
    loot.add_if(
        other["body"] != forge.bodies()[0] or "another review" not in forge.bodies()[0], "another's comment"
    )
    loot.add_if(not any("no-longer-fits" in body for body in forge.bodies()), "a comment without the danger")


@pytest.mark.parametrize("left", ["nothing", "another stack"])
def test_a_job_that_leaves_no_head_opens_the_gate_or_leaves_an_older_verdict(
    github: GitHub, sample: Sample, forge: LocalForge, loot: Loot, left: str
):
    _, merge = sample.change("count=4", "count=8")
    assert github.compile(merge).code == 0
    assert github.review(merge).outputs["verdict"] == "open"
    assert "There is no review" not in forge.bodies()[0]
    _, merge = sample.change("count=8", "count=9")
    assert github.compile(merge).code == 0
    if left == "nothing":
        shutil.rmtree(github.artifacts / "dra-infra-head")
    else:
        forged(github, {"program.stack": "another"})
    run = github.review(merge)
    loot.add_if((run.code, run.outputs["verdict"]) != (2, "none"), f"the verdict {run.outputs['verdict']}")
    loot.add_if("There is no review" not in forge.bodies()[0], "a comment that shows an older verdict")


@pytest.mark.parametrize(
    "artefact",
    [
        b"",
        b"{}",
        b"[" * 200_000,
        b'{"format": "dra-infra/compiled/3", "kind": "manifests", "files": {"../../../../../../tmp/dra-infra-pwned": "eA=="}}',
        b'{"format": "dra-infra/compiled/3", "kind": "program", "failed": []}',
    ],
    ids=["nothing", "no record", "deep", "a path that leads out", "no reason"],
)
def test_an_artefact_that_is_no_head_opens_the_gate_or_leaves_its_folder(
    github: GitHub, sample: Sample, forge: LocalForge, loot: Loot, artefact: bytes
):
    _, merge = sample.change("count=4", "count=8")
    assert github.compile(merge).code == 0
    (github.artifacts / "dra-infra-head" / "dra-infra-head.json").write_bytes(artefact)
    run = github.review(merge)
    loot.add_if((run.code, run.outputs["verdict"]) != (2, "none"), f"the verdict {run.outputs['verdict']}")
    loot.add_if(Path("/tmp/dra-infra-pwned").exists(), "a file outside")
    loot.add_if("Traceback" in run.log, "a traceback")


def test_the_head_of_an_innocent_commit_is_handed_in_for_another(
    github: GitHub, sample: Sample, forge: LocalForge, loot: Loot
):
    _, innocent = sample.change('"replicas": 2', '"replicas": 3')
    assert github.compile(innocent).code == 0
    head, merge = sample.change("count=4", "count=9")
    forge.open_pull(head=head, merge=merge, label="somebody:branch")
    run = github.review_afterwards(head)
    loot.add_if(run.outputs["verdict"] != "none", f"the verdict {run.outputs['verdict']} for another commit")
    loot.add_if((head, "success", "dra-infra review infra into main") in forge.statuses, "a green status")


def test_gitlabs_second_job_runs_something_of_the_merge_request(
    sample: Sample, action: Path, loot: Loot, tmp_path: Path
):
    git(action, "branch", "--force", "v1")
    token = "glpat-planted0123456789"
    mark = tmp_path / "ran"
    runs = f"open({str(mark)!r}, 'a').write(__file__ + chr(10))\n"
    head, _ = write(sample, {"typing.py": runs})
    accounts = {token: ("project_7_bot", False)}
    with serving(LocalForge(accounts=accounts, repository="7", number=3)) as forge:
        gitlab = GitLab(sample=sample, forge=forge, source=action, folder=tmp_path)
        compiled = gitlab.compile(head)
        assert compiled.code == 0, compiled.log
        # A runner that keeps its folder: what the first job checked out is still there.
        left = dict.fromkeys(("typing.py", "venv.py", "json.py"), runs)
        job = gitlab.review(head, compiled, left, GITLAB_TOKEN=token)
    assert job.code == 1, job.log
    loot.add_if(mark.exists(), "code of its own in the job with the token")
    loot.add_secrets("the log", compiled.log + job.log, token, "glcbt-planted0123456789")


BACK_END = """
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    open({mark!r}, "w").write("\\n".join(os.environ))
    name = "planted-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("planted-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: planted\\nVersion: 1.0\\n")
        wheel.writestr("planted-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("planted-1.0.dist-info/RECORD", "")
    return name
"""


def test_a_package_of_the_merge_request_learns_where_dra_infra_is_fetched_from(
    sample: Sample, action: Path, loot: Loot, tmp_path: Path
):
    git(action, "branch", "--force", "v1")
    mark = tmp_path / "environment"
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    package = {"pyproject.toml": build, "backend.py": BACK_END.format(mark=str(mark))}
    head, _ = write(
        sample,
        {
            **{f"package/{name}": text for name, text in package.items()},
            "requirements.txt": f"planted @ file://{sample.folder}/compile/package\n",
        },
    )
    with serving(LocalForge(repository="7", number=3)) as forge:
        gitlab = GitLab(sample=sample, forge=forge, source=action, folder=tmp_path)
        job = gitlab.compile(head, DRA_INFRA_REQUIREMENTS="requirements.txt")
    assert job.code == 0, job.log
    names = mark.read_text().split()
    # The address may hold credentials.
    loot.add_if("DRA_INFRA_SOURCE" in names, "the address that dra-infra is fetched from")
    loot.add_if("CI_JOB_TOKEN" in names, "the token of the job")
