"""Where foreign documents enter: each function takes one and does with it all that the commands do, in this process.

What a target may raise is a `ProblemsError`: the answer of a command that has none. Anything else is a traceback.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import urllib3

from dra_infra.answers import asking, validating
from dra_infra.answers.observing import find_cluster_status
from dra_infra.answers.reviewing import compare
from dra_infra.answers.settings import read_snapshot
from dra_infra.catalog import load_fleet
from dra_infra.cli import cluster, explain, migrate
from dra_infra.cli.cluster import describe_diagnosis
from dra_infra.cli.drain import describe as describe_drain
from dra_infra.cli.drain import to_json as drain_to_json
from dra_infra.cli.migrate_files import BACKUP
from dra_infra.cli.printing import print_problems
from dra_infra.cli.review import RENDERERS as REVIEW_FORMS
from dra_infra.cli.validate import RENDERERS, workflow_commands
from dra_infra.client.kinds import CLAIMS, EVENTS, NAMESPACES, PODS, SLICES, SNAPSHOT
from dra_infra.client.kubeconfig import Account, User
from dra_infra.client.session import Answer, Session
from dra_infra.cluster import reading
from dra_infra.cluster.capture import capture
from dra_infra.cluster.doctor import diagnose
from dra_infra.cluster.draining import look
from dra_infra.cluster.evidence import gather
from dra_infra.cluster.reading import Reader
from dra_infra.cutover.plan import make_plan
from dra_infra.cutover.sides import as_it_is
from dra_infra.cutover.texts import write_lines
from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import ProblemsError
from dra_infra.fleet import Fleet
from dra_infra.forge.comments import keep_one
from dra_infra.forge.destinations import Destination
from dra_infra.forge.forges import HEADERS, GitHub, GitLab
from dra_infra.forge.messages import Mask, Message
from dra_infra.forge.session import Session as ForgeSession
from dra_infra.migration.outcomes import Migrated
from dra_infra.output.secret_detector import report_mask
from dra_infra.placement.running import Running
from dra_infra.program_objects import without_secrets
from dra_infra.review.placement_report import describe
from dra_infra.review.reviews import HowMade
from dra_infra.sources.manifests import read_side
from dra_infra.target import ClusterTarget
from tests.support.placing import place
from tests.unit.hostile import seeds

_RELEASE: Final = ClusterTarget(kubernetes="1.37").releases[0]
_SHORT: Final = 0.2
"""Seconds that a search may take: how good an answer is does not matter here."""


def check_manifests(data: bytes, folder: Path) -> None:
    """`validate`, in every format."""
    file = _written(folder, data)
    report = validating.validate([str(file)], ClusterTarget())
    print_problems(report.problems, with_count=False)
    for text in (*(render(report) for render in RENDERERS.values()), *workflow_commands(report)):
        text.encode("utf-8", "backslashreplace")


def migrate_manifests(data: bytes, folder: Path) -> None:
    """`migrate`, in every format, as a diff, as a bridge, placed on a fleet, with a plan, and written to another folder and in place."""
    file = _written(folder, data)
    for form in ("text", *migrate.RENDERERS):
        # A diff goes with no report for others than a person.
        migrate.run([str(file)], **{**_MIGRATION, "form": form, "diff": form == "text"})
    migrate.run([str(file)], **{**_MIGRATION, "to": "bridge", "mps_memory": None})
    for form in ("text", "html"):
        migrate.run([str(file)], **{**_MIGRATION, "plan": True, "form": form, "diff": form == "text"})
    migrate.run([str(file)], **{**_MIGRATION, "output": folder / "new"})
    kept = file.with_name(f"{file.name}{BACKUP}")
    kept.unlink(missing_ok=True)
    migrate.run([str(file)], **{**_MIGRATION, "fleet": None, "write": True})
    if kept.exists():
        assert kept.read_bytes() == data
    else:
        assert file.read_bytes() == data


def write_program(data: bytes, folder: Path) -> None:
    """`migrate --to components`, to standard output: the program is run and compared with the objects."""
    file = _written(folder, data)
    migrate.run([str(file)], **{**_MIGRATION, "fleet": None, "diff": False, "to": "components"})


def read_plugin_config(data: bytes, folder: Path) -> None:
    """`migrate --plugin-config FILE`: a whole workload, and a configuration of the plugin that is none."""
    config = _written(folder, data)
    workload = folder / "own.yaml"
    workload.write_text(_GPU_POD)
    options = {**_MIGRATION, "fleet": None, "whole_gpus": False, "plugin_config": config}
    for profile in (None, "1g.10gb"):
        migrate.run([str(workload)], **{**options, "mig_profile": profile})


def read_cluster(data: bytes, folder: Path) -> None:
    """`simulate --snapshot` with a program of ours, and `explain` about an object of the snapshot."""
    file = _written(folder, data)
    cluster = read_snapshot(file)
    program = _side(folder, "own.yaml", _OWN).program
    running = Running.of(cluster, program)
    manifests = [each.manifest for each in program.objects]
    _place(manifests, cluster.fleet, taken=running.taken)
    with contextlib.suppress(ProblemsError):
        end = time.monotonic() + _SHORT
        plan = make_plan(
            manifests,
            [Migrated(manifest=each) for each in manifests],
            as_it_is(cluster.fleet),
            release=_RELEASE,
            is_late=lambda: time.monotonic() > end,
            taken=running.taken,
            running=running.of_kind("Pod"),
        )
        "\n".join(write_lines(plan)).encode("utf-8", "backslashreplace")
    with contextlib.suppress(ProblemsError):
        explain.run(
            "pod/waits",
            None,
            namespace="ml",
            fleet=None,
            snapshot=file,
            kubeconfig=None,
            context=None,
            kubernetes="1.37",
            gates={},
            stack=None,
            config={},
            timeout=_SHORT,
            is_deep=False,
            kinds=None,
            form="json",
            request_timeout=_SHORT,
        )


def read_fleet(data: bytes, folder: Path) -> None:
    """`simulate --fleet FILE`."""
    fleet = load_fleet(str(_written(folder, data)))
    _place(read_manifests(_OWN), fleet)


def review_objects(data: bytes, folder: Path) -> None:
    """`review` of objects against whole ones, on a fleet, in every format."""
    head = _side(folder, "objects.yaml", data)
    base = _side(folder, "own.yaml", _OWN)
    before, after = without_secrets(base.program, head.program, report_mask())
    fleet = _fleet() if len(data) % 2 else None
    result = compare(before, after, base_label="main", fleet=fleet, made=HowMade(locate=head.locate))
    for render in REVIEW_FORMS.values():
        render(result).encode("utf-8", "backslashreplace")


def hear_forge(data: bytes, _folder: Path) -> None:
    """`comment`: every answer of the forge is *data*."""
    random = Random(len(data))  # noqa: S311
    for forge in ("github", "gitlab"):
        now = [0.0]

        def sleep(seconds: float, now: list[float] = now) -> None:
            now[0] += max(seconds, 0.01)

        where = Destination(
            forge=forge,
            api="http://forge.invalid/api",
            repository="team/infra",
            number=42,
            token="glpat-planted-0123456789",
            token_variable="TOKEN",
        )
        session = ForgeSession(
            where,
            mask=Mask(where.token),
            headers=HEADERS if forge == "github" else None,
            sleep=sleep,
            clock=lambda now=now: now[0],
            today=lambda now=now: now[0],
            jitter=lambda: 0.0,
        )
        session._http.mount("http://", _Forge(data, random))
        marker = "<!-- dra-infra review infra/prod -->"
        with contextlib.suppress(ProblemsError):
            keep_one(
                (GitHub if forge == "github" else GitLab)(session), Message(marker=marker, body=f"{marker}\n")
            )


class _Forge(requests.adapters.BaseAdapter):
    """Answers with the same body each time, in a status and with headers that are often none of a good server."""

    def __init__(self, data: bytes, random: Random) -> None:
        super().__init__()
        self._data = data
        self._random = random

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        chosen = self._random
        response = requests.Response()
        response.status_code = chosen.choice(
            (200, 200, 200, 200, 201, 201, 204, 301, 403, 404, 422, 429, 500, 502)
        )
        response.headers.update(
            chosen.choice(
                (
                    {},
                    {},
                    {
                        "Retry-After": chosen.choice(
                            ("1", "-1", "1e9", "é", "Fri, 99 Jan 2026", "9" * 400, "nan")
                        )
                    },
                    {"Link": chosen.choice(('<x>; rel="next"', "<<;;,,", "; rel=next, <", "=" * 100))},
                    {"X-Next-Page": "2"},
                    {
                        "Location": chosen.choice(
                            ("http://other.invalid/", "http://[", "/api/x", "\x00", "ftp://x:99999/")
                        )
                    },
                    {
                        "X-RateLimit-Remaining": "0",
                        "X-RateLimit-Reset": chosen.choice(("x", "-5", "1e400", "²")),
                    },
                )
            )
        )
        response.request = request
        response.url = request.url or ""
        response.raw = urllib3.HTTPResponse(io.BytesIO(self._data), preload_content=False)
        return response

    def close(self) -> None:
        """Nothing is open."""


def hear_cluster(data: bytes, folder: Path) -> None:
    """`snapshot`, `doctor`, `status`, `explain`, `drain` and `migrate`: one kind of objects is *data*, the others are whole."""
    plural, _, body = data.partition(b"\n")
    session = _Cluster(plural.decode("utf-8", "replace"), body)
    reader = Reader(session)
    tasks: tuple[Callable[[], Any], ...] = (
        lambda: _captured(reader, folder),
        lambda: "\n".join(describe_diagnosis(diagnose(gather(reader)))),
        lambda: _status(reader),
        lambda: _explained(reader),
        lambda: _drained(reader),
        lambda: _migrated(reader),
    )
    for task in tasks:
        with contextlib.suppress(ProblemsError):
            task()


class _Cluster(Session):
    """An API server that is not asked over the network."""

    def __init__(self, plural: str, body: bytes) -> None:
        super().__init__(
            Account(name="test", server="http://127.0.0.1:9", user=User()), {}, sleep=lambda _: None
        )
        self._plural = plural
        self._body = body

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, accept: str = "application/json"
    ) -> Answer:
        last = urlsplit(path).path.rpartition("/")[2]
        if last == self._plural and "continue" not in (query or {}):
            return Answer(status=200, body=self._body)
        if last in ("version", "resource.k8s.io"):
            found: Any = {"gitVersion": "v1.37.1", "versions": [{"version": "v1"}]}
        elif last in ("apis", "v1"):
            found = seeds.SERVED
        elif last == "metrics":
            return Answer(status=403, body=b"{}")
        else:
            found = {"metadata": {"resourceVersion": "7"}, "items": seeds.cluster().get(last, ())}
        return Answer(status=200, body=json.dumps(found).encode())


def _captured(reader: Reader, folder: Path) -> None:
    taken = capture(reader, mask=report_mask(), made_by="test")
    file = folder / "captured.yaml"
    file.write_text(taken.text, "utf-8", errors="surrogatepass")
    read_snapshot(file)


def _status(reader: Reader) -> None:
    items = {kind: reader.list(kind).items for kind in (CLAIMS, PODS, SLICES, EVENTS, NAMESPACES)}
    for form in cluster.FORMS:
        # Numbers for Prometheus are those of teams.
        if form != "prometheus":
            cluster.render_status(find_cluster_status(items), form)
    for form in ("text", "json", "prometheus"):
        cluster.render_status(find_cluster_status(items, team_label="team"), form)


def _drained(reader: Reader) -> None:
    for target in ("n1", "n1/gpu-0"):
        shown = look(reader, target)
        "\n".join(describe_drain(shown))
        json.dumps(drain_to_json(shown))


def _explained(reader: Reader) -> None:
    for kind in SNAPSHOT[:1]:
        reader.list(kind, names_only=True)
    original = asking.open_reader
    asking.open_reader = lambda *_args, **_named: reader
    try:
        explain.run(
            "pod/waits",
            None,
            namespace="ml",
            fleet=None,
            snapshot=None,
            kubeconfig=None,
            context=None,
            kubernetes=None,
            gates={},
            stack=None,
            config={},
            timeout=_SHORT,
            is_deep=False,
            kinds=None,
            form="text",
            request_timeout=_SHORT,
        )
    finally:
        asking.open_reader = original


def _migrated(reader: Reader) -> None:
    options = {**_MIGRATION, "context": "test", "fleet": None}
    original = reading.open_reader
    reading.open_reader = lambda *_args, **_named: reader
    try:
        migrate.run([], **options)
        migrate.run([], **{**options, "diff": False, "to": "components"})
        with contextlib.suppress(ProblemsError):
            migrate.run([], **{**options, "whole_gpus": False, "plan": True})
    finally:
        reading.open_reader = original


@functools.cache
def _fleet() -> Fleet:
    return load_fleet("hgx-h100")


def _place(manifests: Any, fleet: Any, **more: Any) -> None:
    placement = place(manifests, fleet, release=_RELEASE, with_headroom=True, **more)
    "\n".join(describe(placement)).encode("utf-8", "backslashreplace")


def _side(folder: Path, name: str, data: bytes | str) -> Any:
    file = folder / name
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_side(file, inside=folder, shown=name, label="objects", config={})


def _written(folder: Path, data: bytes) -> Path:
    file = folder / "document.yaml"
    file.write_bytes(data)
    return file


_MIGRATION: Final[Mapping[str, Any]] = {
    "whole_gpus": True,
    "plugin_config": None,
    "mig_profile": None,
    "mps_memory": "15360Mi",
    "snapshot": None,
    "kubeconfig": None,
    "context": None,
    "namespaces": (),
    "kinds": None,
    "fleet": "hgx-h100 x 1",
    "to": "claims",
    "plan": False,
    "kubernetes": None,
    "gates": {},
    "driver": "newest",
    "write": False,
    "output": None,
    "diff": True,
    "check": False,
    "form": "text",
    "source": None,
    "stack": None,
    "config": {},
    "timeout": 60.0,
}
"""Arguments of `migrate`."""

_OWN: Final = Path(__file__).with_name("seeds.yaml").read_text("utf-8")

_GPU_POD: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec:
  containers:
    - {name: a, image: "registry.example.com/a:1", resources: {limits: {nvidia.com/gpu: 1}}}
    - {name: b, image: "registry.example.com/a:1", resources: {limits: {nvidia.com/mig-1g.10gb: 2}}}
"""

TARGETS: Final[Mapping[str, Callable[[bytes, Path], None]]] = {
    "validate": check_manifests,
    "migrate": migrate_manifests,
    "components": write_program,
    "plugin-config": read_plugin_config,
    "snapshot": read_cluster,
    "fleet": read_fleet,
    "program": review_objects,
    "forge": hear_forge,
    "cluster": hear_cluster,
}
