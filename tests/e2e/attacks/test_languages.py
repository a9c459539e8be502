"""A stranger's program in another language looks for secrets, writes outside, and reaches for the network and for daemons."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.support.languages.commands import Team, copy_host
from tools.node_packages import node_modules

pytestmark = pytest.mark.e2e

SECRETS = {
    "PULUMI_ACCESS_TOKEN": "planted-pulumi-token",
    "PULUMI_CONFIG_PASSPHRASE": "planted-passphrase",
    "AWS_SECRET_ACCESS_KEY": "planted-aws-key",
    "GITLAB_TOKEN": "planted-gitlab-token",
}

OBJECT = """\
resources:
  loot:
    type: kubernetes:core/v1:ConfigMap
    properties: {metadata: {name: loot}, data: %s}
"""

# The host of YAML starts the compiler that the project names: any command.
COMPILER = """
import glob, json, os, socket
secrets, files, targets, port, daemon = json.loads(%r)
seen = [json.dumps(dict(os.environ))]
for file in [*glob.glob("/proc/*/environ"), *files]:
    try:
        seen.append(open(file, "rb").read().decode(errors="replace"))
    except OSError:
        pass
got = sorted(each for each in secrets if each in "".join(seen))
for target in targets:
    try:
        open(target, "ab").close()
        got.append(f"the right to write {target}")
    except OSError:
        pass
for family, address in ((socket.AF_INET, ("127.0.0.1", port)), (socket.AF_UNIX, daemon), (socket.AF_INET, ("169.254.169.254", 80))):
    try:
        with socket.socket(family) as opened:
            opened.settimeout(5)
            opened.connect(address)
            got.append(f"a connection to {address}")
    except OSError:
        pass
print(%r %% json.dumps({"got": json.dumps(got)}))
"""


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """A service of the machine and a daemon such as Docker's, which take every connection: a port, and a socket of a file."""
    daemon = str(tmp_path / "d.sock")
    with socket.socket() as service, socket.socket(socket.AF_UNIX) as local:
        service.bind(("127.0.0.1", 0))
        local.bind(daemon)
        for each in (service, local):
            each.listen()
        yield service.getsockname()[1], daemon


@pytest.fixture
def team(tmp_path: Path, binaries: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Team:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine forge.example password planted-netrc\n")
    hosts = copy_host(binaries("pulumi-language-yaml"), tmp_path_factory.mktemp("hosts"))
    team = Team(tmp_path / "repository", hosts, {**SECRETS, "HOME": str(home)})
    team.write(Pulumi_yaml="name: app\nruntime: yaml\n" + OBJECT % "{got: nothing}")
    team.commit()
    with (team.top / ".git" / "config").open("a") as config:
        config.write('[http]\n\textraheader = "AUTHORIZATION: basic planted-checkout"\n')
    return team


def attack(team: Team, script: str) -> str:
    team.project.joinpath("steal.py").write_text(script)
    runtime = {"name": "yaml", "options": {"compiler": shlex.join([sys.executable, "steal.py"])}}
    text = f"name: app\nruntime: {json.dumps(runtime)}\n{OBJECT % '{got: nothing}'}"
    team.write(Pulumi_yaml=text)
    done = team.run("review", ".", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing" in done.stdout
    return done.stdout + done.stderr


def test_a_compiler_of_yaml_reads_secrets_writes_outside_and_opens_connections(
    team: Team, loot: Loot, tmp_path: Path, listening: tuple[int, str]
) -> None:
    home = Path(team.variables["HOME"])
    secrets = [*SECRETS.values(), "planted-netrc", "planted-checkout"]
    team.project.joinpath("netrc").symlink_to(home / ".netrc")
    files = [str(home / ".netrc"), str(team.top / ".git" / "config"), "../.git/config", "netrc"]
    targets = [str(tmp_path / "outside"), str(home / ".bashrc"), str(team.hosts / "pulumi-language-yaml")]
    told = json.dumps([secrets, files, targets, *listening])
    answer = attack(team, COMPILER % (told, "name: app\nruntime: yaml\n" + OBJECT))
    loot.add_secrets("what the program declares", answer, *secrets)
    loot.add_if("the right to write" in answer, "the right to write outside")
    loot.add_if("a connection to" in answer, "a connection")
    for target in targets[:2]:
        loot.add_if(Path(target).exists(), f"a file at {target}")


def test_a_program_in_yaml_reads_files_of_the_user(team: Team, loot: Loot) -> None:
    home = Path(team.variables["HOME"])
    reading = json.dumps({"got": {"fn::readFile": str(home / ".netrc")}})
    team.write(Pulumi_yaml="name: app\nruntime: yaml\n" + OBJECT % reading)
    done = team.run("review", ".", "--format", "json")
    assert "permission denied" in done.stdout + done.stderr
    loot.add_secrets("what the program declares", done.stdout + done.stderr, "planted-netrc")


def test_the_supervisor_ends_a_host_and_all_that_it_started(team: Team, loot: Loot, tmp_path: Path) -> None:
    # Its grandchild leaves the group of the host.
    script = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(600)
    os._exit(0)
os.wait()
print(%r %% '{got: "nothing more"}')
""" % ("name: app\nruntime: yaml\n" + OBJECT)
    attack(team, script)
    runs = [each for each in Path("/proc").glob("[0-9]*/cmdline") if b"steal.py" in _read(each)]
    loot.add_if(runs, "a process that outlives the review")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


# They say what they got in the error with which they end.
IN_JAVASCRIPT = """
const fs = require("fs"), net = require("net");
const [secrets, files, targets, port, daemon] = JSON.parse(%s);
const got = [];
let seen = JSON.stringify(process.env);
for (const file of ["/proc/1/environ", `/proc/${process.ppid}/environ`, ...files]) {
    try { seen += fs.readFileSync(file, "utf-8"); } catch {}
}
got.push(...secrets.filter((each) => seen.includes(each)));
for (const target of targets) {
    try { fs.closeSync(fs.openSync(target, "a")); got.push(`the right to write ${target}`); } catch {}
}
const tries = [{ host: "127.0.0.1", port }, { path: daemon }, { host: "169.254.169.254", port: 80 }];
const connected = tries.map((address) => new Promise((resolve) => {
    const opened = net.connect({ ...address, timeout: 5000 });
    opened.on("connect", () => { got.push("a connection"); opened.destroy(); resolve(); });
    for (const event of ["error", "timeout"]) { opened.on(event, () => { opened.destroy(); resolve(); }); }
}));
Promise.all(connected).then(() => { throw new Error("it got: " + JSON.stringify(got)); });
"""

IN_GO = """
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func main() {
	var told struct{ Secrets, Files, Targets, Addresses []string }
	if err := json.Unmarshal([]byte(%s), &told); err != nil {
		panic(err)
	}
	seen := strings.Join(os.Environ(), " ")
	for _, file := range append(told.Files, "/proc/1/environ", fmt.Sprintf("/proc/%%d/environ", os.Getppid())) {
		if text, err := os.ReadFile(file); err == nil {
			seen += string(text)
		}
	}
	got := []string{}
	for _, secret := range told.Secrets {
		if strings.Contains(seen, secret) {
			got = append(got, secret)
		}
	}
	for _, target := range told.Targets {
		if file, err := os.OpenFile(target, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			file.Close()
			got = append(got, "the right to write "+target)
		}
	}
	for _, address := range told.Addresses {
		kind, rest, _ := strings.Cut(address, " ")
		if opened, err := net.DialTimeout(kind, rest, 5*time.Second); err == nil {
			opened.Close()
			got = append(got, "a connection")
		}
	}
	panic(fmt.Sprint("it got: ", got))
}
"""


@pytest.mark.parametrize("runtime", ["nodejs", "go"])
def test_a_program_in_another_language_reads_secrets_writes_outside_and_opens_connections(
    team: Team, loot: Loot, tmp_path: Path, listening: tuple[int, str], runtime: str
) -> None:
    home = Path(team.variables["HOME"])
    secrets = [*SECRETS.values(), "planted-netrc", "planted-checkout"]
    team.project.joinpath("netrc").symlink_to(home / ".netrc")
    files = [str(home / ".netrc"), str(team.top / ".git" / "config"), "../.git/config", "netrc"]
    targets = [str(tmp_path / "outside"), str(home / ".bashrc"), str(team.hosts / "pulumi-language-yaml")]
    port, daemon = listening
    team.write(Pulumi_yaml=f"name: app\nruntime: {runtime}\n")
    allowed = []
    if runtime == "nodejs":
        packages = node_modules()
        team.project.joinpath("node_modules").symlink_to(packages)
        told = json.dumps(json.dumps([secrets, files, targets, port, daemon]))
        team.write(**{"index.js": IN_JAVASCRIPT % told})
        allowed = ["--allow", f"read:{packages}"]
    else:
        addresses = [f"tcp 127.0.0.1:{port}", f"unix {daemon}", "tcp 169.254.169.254:80"]
        told = json.dumps({"secrets": secrets, "files": files, "targets": targets, "addresses": addresses})
        module = "module example.com/app\n\ngo 1.24\n"
        team.write(**{"main.go": IN_GO % json.dumps(told), "go.mod": module})
    done = team.run("compile", ".", "--timeout", "300", *allowed, "--output", str(tmp_path / "head.json"))
    answer = done.stdout + done.stderr
    assert "it got: " in answer
    loot.add_secrets("what the program says", answer, *secrets)
    loot.add_if("the right to write" in answer, "the right to write outside")
    loot.add_if("a connection" in answer, "a connection")
    for target in targets[:2]:
        loot.add_if(Path(target).exists(), f"a file at {target}")
