from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.cluster.status import Seen, find_status
from dra_infra.cluster.teams import Teams, describe_teams, find_teams, to_prometheus
from tests.support.cluster.samples import GPU, claim, pod, slice_of


def of(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def space(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


SEEN = Seen(
    claims=[
        claim("train", f"{GPU}/n0/gpu-0", f"{GPU}/n0/gpu-1", pods=["p"]),
        claim("kept", f"{GPU}/n0/gpu-2"),
        claim("wants"),
        of("speech", claim("serve", f"{GPU}/n1/gpu-0", pods=["q"])),
    ],
    slices=[slice_of(f"n{index}", *(f"gpu-{number}" for number in range(8))) for index in range(2)],
)


def quota(namespace: str, hard: int, used: int, **spec: Any) -> dict[str, Any]:
    key = "h100.deviceclass.resource.k8s.io/devices"
    return {
        "metadata": {"name": f"q{hard}", "namespace": namespace},
        "spec": {"hard": {key: str(hard), "pods": "9"}, **spec},
        "status": {"used": {key: str(used), "pods": "3"}},
    }


QUOTAS = [quota("ml", 16, 4), quota("audio", 8, 0)]


def teams(seen: Seen, *namespaces: dict[str, Any], **more: Any) -> Teams:
    return find_teams(find_status(seen), namespaces, **more)


def test_the_page_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text()
    assert "\n".join(["```", *describe_teams(teams(SEEN, quotas=QUOTAS)), "```"]) in page


def test_each_namespace_is_a_team_with_what_it_holds_and_what_nobody_uses() -> None:
    ml, speech = teams(SEEN).teams
    [held] = ml.devices
    assert (held.used, held.unused, held.names) == (2, 1, ("n0/gpu-0", "n0/gpu-1", "n0/gpu-2"))
    assert ml.claims == {"in use": 1, "allocated": 1, "pending": 1}
    assert [each.used for each in speech.devices] == [1]


def test_namespaces_with_one_value_of_the_label_are_one_team() -> None:
    found = teams(SEEN, space("ml", team="ai"), space("speech", team="ai"), label="team")
    [team] = found.teams
    assert (team.name, team.namespaces) == ("ai", ("ml", "speech"))
    assert [each.used + each.unused for each in team.devices] == [4]


def test_namespaces_without_the_label_are_named_as_such() -> None:
    found = teams(SEEN, space("ml", team="ai"), label="team")
    assert [each.name for each in found.teams] == ["", "ai"]
    assert next(iter(describe_teams(found))).startswith("(no label team)  gpu.nvidia.com  1 device")


def test_a_device_of_two_claims_counts_once_for_a_team_and_is_used_where_one_of_them_is() -> None:
    both = [
        claim("a", f"{GPU}/n0/gpu-0", shareID="1"),
        claim("b", f"{GPU}/n0/gpu-0", pods=["p"], shareID="2"),
    ]
    [team] = teams(Seen(claims=both, slices=SEEN.slices)).teams
    [held] = team.devices
    assert (held.used, held.unused, held.shares) == (1, 0, 1)


def test_what_is_only_looked_at_is_held_by_nobody() -> None:
    seen = Seen(claims=[claim("a", f"{GPU}/n0/gpu-0", pods=["p"], adminAccess=True)], slices=SEEN.slices)
    found = teams(seen)
    assert (found.teams[0].devices, found.free) == ((), {GPU: 16})


def test_a_tenant_without_claims_is_a_team_with_its_quota() -> None:
    found = teams(
        Seen(slices=SEEN.slices), quotas=[*QUOTAS, quota("ml", 12, 5), quota("no", 1, 0, scopes=["x"])]
    )
    assert {each.name: each.quota for each in found.teams} == {
        "audio": {"h100": {"hard": 8, "used": 0}},
        "ml": {"h100": {"hard": 12, "used": 5}},
    }
    lines = list(to_prometheus(found))
    assert 'dra_infra_team_quota{team="ml",class="h100",state="hard"} 12' in lines
    spaces = [space("ml", team="ai"), space("audio", team="ai")]
    [team] = teams(SEEN, *spaces, label="team", quotas=QUOTAS).teams[1:]
    assert (team.namespaces, team.quota) == (("audio", "ml"), {"h100": {"hard": 24, "used": 4}})


def test_pods_whose_claims_are_not_made_count_for_their_team() -> None:
    [team] = teams(Seen(pods=[pod("w", "Pending", templates=["large"])])).teams
    assert (team.waiting, team.claims) == (1, {})


def test_nothing_is_said_to_be_free_where_not_all_claims_are_seen() -> None:
    found = teams(SEEN, sees_all=False)
    assert not [line for line in describe_teams(found) if "free" in line]
    assert not [line for line in to_prometheus(found) if line.startswith("dra_infra_devices{")]


def test_what_is_published_no_more_is_neither_free_nor_taken() -> None:
    held = [claim("a", f"{GPU}/n0/gone"), claim("b", f"{GPU}/n0/gone-too", f"{GPU}/n0/gpu-0")]
    old = slice_of("n0", "gone", "gpu-0", "gpu-1")
    new = slice_of("n0", "gpu-0", "gpu-1", pool={"generation": 2})
    found = teams(Seen(claims=held, slices=[old, new]))
    assert (found.published, found.free) == ({GPU: 2}, {GPU: 1})
    found = teams(Seen(claims=held, slices=[slice_of("n0", "gpu-1")]))
    assert f'dra_infra_devices{{driver="{GPU}",state="free"}} 1' in to_prometheus(found)


def test_names_of_a_stranger_are_no_lines_and_no_labels_of_their_own() -> None:
    name = 'a"} 1\n\x1b[31m\u202ex\\'
    found = teams(Seen(claims=[of(name, claim("a", f"{GPU}/n0/gpu-0"))], slices=SEEN.slices))
    lines = [*describe_teams(found), *to_prometheus(found)]
    assert all(line.isprintable() for line in lines)
    [line] = [each for each in to_prometheus(found) if 'state="unused"' in each]
    assert line.startswith('dra_infra_team_devices{team="a\\"} 1\\\\n')


def snapshot_of(folder: Path, seen: Seen) -> Path:
    version = {"apiVersion": "resource.k8s.io/v1"}
    objects = [
        *({**version, "kind": "ResourceSlice", **each} for each in seen.slices),
        *({**version, "kind": "ResourceClaim", **each} for each in seen.claims),
        {"apiVersion": "v1", "kind": "Namespace", **space("ml", team="ai")},
        *({"apiVersion": "v1", "kind": "ResourceQuota", **each} for each in QUOTAS),
    ]
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return file


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["status", *map(str, arguments)])
    return done.exit_code, done.output


def test_a_snapshot_answers_as_a_cluster_does(tmp_path: Path) -> None:
    file = snapshot_of(tmp_path, SEEN)
    code, said = run("--by-team", "--snapshot", file)
    assert (code, said.splitlines()) == (0, list(describe_teams(teams(SEEN, quotas=QUOTAS))))
    code, said = run("--team-label", "team", "--snapshot", file, "--json")
    assert [each["name"] for each in json.loads(said)["teams"]] == ["", "ai"]
    code, said = run("--by-team", "--snapshot", file, "--format", "prometheus")
    assert f'dra_infra_devices{{driver="{GPU}",state="free"}} 12' in said.splitlines()
    code, said = run("--by-team", "--snapshot", file, "--namespace", "speech")
    assert said.splitlines()[-1] == "1 team"
    assert "claims: " in run("--snapshot", file)[1]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--by-team", "--graph"], "teams are shown as text, json, prometheus"),
        (["--format", "prometheus"], "add --by-team"),
        (["--watch"], "a snapshot does not change"),
        (["--context", "prod"], "a snapshot is read or a cluster, not both"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str], refusal: str, tmp_path: Path
) -> None:
    code, said = run("--snapshot", snapshot_of(tmp_path, SEEN), *arguments)
    assert code == 2
    assert refusal in said
