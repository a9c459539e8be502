from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from dra_infra.review.markdown_report import marker_of
from tests.support.forge.local_forge import LocalForge, Reply, serving
from tests.support.warm_commands import warm

BODY = f"{marker_of('infra', 'prod')}\n### all well\n"
NAMES = (
    *(
        "GITHUB_TOKEN",
        "GITLAB_TOKEN",
        "NPM_TOKEN",
        "PULUMI_ACCESS_TOKEN",
        "CI_JOB_TOKEN",
        "SLACK_TOKEN",
        "VAULT_TOKEN",
    ),
    *(
        "DB_PASSWORD",
        "CI_REGISTRY_PASSWORD",
        "MYSQL_PASSWD",
        "PULUMI_CONFIG_PASSPHRASE",
        "AWS_SECRET_ACCESS_KEY",
    ),
    *(
        "CLIENT_SECRET",
        "AZURE_CREDENTIALS",
        "SSH_PRIVATE_KEY",
        "DEPLOY_PRIVATEKEY",
        "GOOGLE_API_KEY",
        "MAPS_APIKEY",
    ),
    *("AWS_ACCESS_KEY_ID", "WEBHOOK_SECRET"),
)
SECRETS = {
    name: f"planted-{number}-" + hashlib.sha256(name.encode()).hexdigest()[:16]
    for number, name in enumerate(NAMES)
}


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    accounts = {SECRETS["GITHUB_TOKEN"]: ("reviewer", False), SECRETS["GITLAB_TOKEN"]: ("reviewer", False)}
    with serving(LocalForge(accounts=accounts)) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "review.md"
    path.write_text(BODY)
    return path


def comment(file: Path, api: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    options = ("--repository", "team/infra", "--number", "42", "--api", api, "--timeout", "20")
    return subprocess.run(
        [warm().command, "comment", str(file), *options, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], **SECRETS, **environment},
        timeout=60,
    )


def test_twenty_secrets_are_planted():
    assert len(SECRETS) == 20


def test_a_review_is_posted_then_kept_up_to_date(forge: LocalForge, file: Path):
    created = comment(file, forge.github)
    assert (created.returncode, created.stderr) == (0, "")
    assert created.stdout == f"created: {forge.comments[0]['html_url']}\n"
    file.write_text(BODY + "more\n")
    assert comment(file, forge.github, "--dry-run").stdout.startswith("would update: ")
    assert comment(file, forge.github).stdout.startswith("updated: ")
    again = json.loads(comment(file, forge.github, "--json").stdout)
    assert again == {
        "action": "unchanged",
        "comment": forge.comments[0]["id"],
        "forge": "github",
        "number": 42,
        "problems": [],
        "removed": [],
        "repository": "team/infra",
        "schema": "dra-infra.comment/v1",
        "url": forge.comments[0]["html_url"],
    }
    assert forge.bodies() == [BODY + "more\n"]


def test_gitlab_is_known_by_its_address(forge: LocalForge, file: Path):
    assert comment(file, forge.gitlab).stdout == "created: a comment on team/infra!42\n"


def test_what_is_missing_ends_with_two_and_all_problems(file: Path):
    result = subprocess.run(
        [warm().command, "comment", str(file), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert result.returncode == 2
    assert [each["code"] for each in json.loads(result.stdout)["problems"]] == ["forge-settings"] * 3
    assert result.stderr.endswith("3 problems\n")


def everything() -> str:
    """Every secret in the forms in which servers hand them back."""
    forms = [
        form
        for secret in SECRETS.values()
        for form in (secret, quote(secret), base64.b64encode(secret.encode()).decode())
    ]
    return " ".join(forms)


ANSWERS = [
    *(Reply(status, json.dumps({"message": everything()[:4000]})) for status in (401, 403, 404, 422, 500)),
    *(Reply(403, json.dumps({"message": each, "errors": [{"message": each}]})) for each in SECRETS.values()),
    Reply(422, json.dumps({"message": {"body": list(SECRETS.values())}, "error": "\x1b[31m"})),
    Reply(429, json.dumps({"message": everything()}), {"Retry-After": "3600"}),
    Reply(403, json.dumps({"message": "secondary rate limit " + everything()})),
    Reply(500, f"<html>{everything()}</html>"),
    Reply(200, f"<html>{everything()}</html>"),
    Reply(200, f'["{everything()}'),
    Reply(
        302, "", {"Location": f"https://{SECRETS['GITHUB_TOKEN']}:x@{SECRETS['NPM_TOKEN']}.example.com/?q"}
    ),
]


@pytest.mark.parametrize("forge_kind", ["github", "gitlab"])
def test_no_answer_makes_a_secret_show_or_a_traceback(
    forge: LocalForge,
    file: Path,
    forge_kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    from dra_infra.cli.pull_requests import comment

    for name in list(os.environ):
        if name.startswith(("GITHUB_", "CI_", "GITLAB_")):
            monkeypatch.delenv(name)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("dra_infra.forge.session.MOST_TRIES", 1)
    for method in ("GET", "POST"):
        for reply in ANSWERS:
            forge.replies.clear()
            forge.fail(method, "/42/", reply)
            code = comment(
                file,
                forge=None,
                api=getattr(forge, forge_kind),
                repository="team/infra",
                number=42,
                token_variable=None,
                account=None,
                timeout=30.0,
                dry_run=False,
                form="json",
            )
            out, err = capfd.readouterr()
            assert code == 2, (reply, out, err)
            assert json.loads(out)["problems"][0]["code"].startswith("forge-")
            assert "Traceback" not in err
            assert "\x1b" not in out + err
            for secret in SECRETS.values():
                for form in (secret, base64.b64encode(secret.encode()).decode().rstrip("=")):
                    assert form not in out + err, reply
    assert forge.comments == []


def test_no_failure_of_the_process_shows_a_secret_or_a_traceback(forge: LocalForge, file: Path):
    for reply in (ANSWERS[1], ANSWERS[-1]):
        forge.replies.clear()
        forge.fail("GET", "/42/", reply)
        result = comment(file, forge.github)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
        assert not any(secret in result.stdout + result.stderr for secret in SECRETS.values())


def test_a_netrc_does_not_replace_the_token(forge: LocalForge, file: Path, tmp_path: Path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password hunter2\n")
    assert comment(file, forge.github, HOME=str(tmp_path)).returncode == 0
    assert {asked.headers["authorization"] for asked in forge.asked} == {f"Bearer {SECRETS['GITHUB_TOKEN']}"}


def test_a_secret_in_the_review_is_not_posted(forge: LocalForge, file: Path):
    file.write_text(BODY + "\n".join(SECRETS.values()))
    assert comment(file, forge.github).returncode == 0
    assert not any(secret in forge.bodies()[0] for secret in SECRETS.values())
