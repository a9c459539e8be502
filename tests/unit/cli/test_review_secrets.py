from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

FORMS = ("text", "markdown", "html", "json", "sarif", "junit")

ENVIRONMENT = {
    "REGISTRY_TOKEN": "env-token-5e01",
    "DB_PASSWORD": 'env"password\\5e02',
    "PULUMI_CONFIG_PASSPHRASE": "env passphrase 5e03",
    "AWS_SECRET_ACCESS_KEY": "envSecretKey/5e04+x",
    "SSH_KEY": "-----BEGIN KEY-----\nenvPrivateKeyLine5e05aaaa\nenvPrivateKeyLine5e06bbbb\n-----END KEY-----",
    "CLOUD_CREDENTIALS": '{"private": "env-credential-5e07"}',
    "PULUMI_CONFIG": '{"app:database": "env-config-5e08"}',
    "PULUMI_CONFIG_SECRET_KEYS": '["app:database"]',
}
ALLOWED = [f"--allow=env:{name}" for name in ENVIRONMENT]
MANIFESTS = """\
apiVersion: v1
kind: Secret
metadata:
  name: s
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data": {"a": "applied-5e09"}}'
data: {a: %(encoded)s, b: c2FtZS01ZTEw}
stringData: {c: "string-data-5e11%(side)s"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, annotations: {note: "%(env)s"}}
data:
  url: "postgres://admin:url-password-5e12%(side)s@db.example.invalid/x"
  args: "--api-token=option-5e13%(side)s --verbose"
  copied: %(copied)s
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeName: "n%(side)s"
  containers:
  - name: c
    image: "example.invalid/%(env)s:1"
    env:
    - {name: API_KEY, value: "variable-5e14%(side)s"}
    - {name: STAYS_PASSWORD, value: "variable-same-5e15"}
    - {name: PLAIN, value: "shown%(side)s"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: "%(env)s_"}
spec: {selectors: [{cel: {expression: "%(env)s%(side)s"}}]}
"""
NEVER = (
    *("5e01", "5e02", "5e03", "5e04", "5e05", "5e06", "5e07", "5e08", "5e09", "5e10", "5e11", "5e12"),
    *("5e13", "5e14", "5e15", "5e16", "5e17", "5e18", "5e19", "5e20"),
    "c2FtZS01ZTEw",
)


def manifests(side: str) -> str:
    texts = (ENVIRONMENT["SSH_KEY"], ENVIRONMENT["DB_PASSWORD"], ENVIRONMENT["PULUMI_CONFIG_PASSPHRASE"])
    return MANIFESTS % {
        "side": side,
        "encoded": base64.b64encode(f"data-5e16{side}".encode()).decode(),
        "env": ENVIRONMENT["REGISTRY_TOKEN"],
        "copied": json.dumps("\n".join((*texts, ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], "env-config-5e08"))),
    }


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    encoded = (base64.b64encode(f"data-5e16{side}".encode()).decode() for side in ("-old", "-new"))
    return (*NEVER, *encoded)


def shows(text: str, secrets: tuple[str, ...]) -> set[str]:
    return {secret for secret in secrets if secret in text}


def test_no_form_shows_a_secret_of_manifests(tree, review, secrets):
    tree.write("k/all.yaml", manifests("-old"))
    tree.commit()
    tree.write("k/all.yaml", manifests("-new"))
    tree.write("k/gone.json", json.dumps({"kind": "Secret", "stringData": "odd-5e17"}))
    for form in FORMS:
        answer = review("k", "--format", form, "--fleet", "hgx-h100")
        assert answer.code == 1, answer.err
        assert shows(answer.out + answer.err, secrets) == set(), form
        assert "secret" in answer.codes


def test_a_secret_that_changes_shows_as_a_change_without_its_value(tree, review, secrets):
    tree.write("k/all.yaml", manifests("-old"))
    tree.commit()
    tree.write("k/all.yaml", manifests("-new"))
    result = json.loads(review("k", "--format", "json").out)
    lines = {
        line.strip("+ -")
        for change in result["changes"]
        for hunk in change["diff"]
        for line in hunk["lines"]
        if line.startswith("+")
    }
    assert {
        "a: '[secret] (changed)'",
        "c: '[secret] (changed)'",
        "url: postgres://[secret] (changed)@db.example.invalid/x",
        "args: --api-token=[secret] (changed) --verbose",
        "value: '[secret] (changed)'",
        "value: shown-new",
    } <= lines
    assert not any(each["what"] == "secret values" for each in result["notKnown"])


def test_a_secret_that_stays_is_no_change(tree, review, secrets):
    tree.write("k/all.yaml", manifests("-old"))
    tree.commit()
    answer = review("k", "--fail-on", "change", "--format", "json")
    assert json.loads(answer.out)["changes"] == []


def test_errors_about_files_hide_secrets(tree, review, secrets):
    tree.write("k/a.yaml", "kind: Secret\n")
    tree.commit()
    tree.write("k/a.yaml", 'kind: Secret\nstringData: {"env-token-5e01": 1, "env-token-5e01": 2}\n')
    answer = review("k")
    assert "yaml-duplicate-key" in answer.codes
    assert shows(answer.out + answer.err, secrets) == set()
    assert shows(review("k", "--base", "env-token-5e01").err, secrets) == set()


PROGRAM = """
import os
import pulumi
import pulumi_kubernetes as k8s

config = pulumi.Config()
print(os.environ["REGISTRY_TOKEN"], config.get("plain"))
k8s.core.v1.ConfigMap(
    "c",
    metadata={"name": "c"},
    data={"a": os.environ["DB_PASSWORD"], "b": config.get("plain") or "", "c": config.require_secret("plain"), "d": "%s"},
)
%s
"""


@pytest.fixture
def project(tree):
    def write(side: str, end: str = "") -> None:
        tree.write("__main__.py", PROGRAM % (side, end))

    tree.write(
        "Pulumi.yaml",
        "name: app\nruntime: python\nconfig:\n  app:plain: {type: string, secret: true, default: project-5e18}\n",
    )
    tree.write("Pulumi.dev.yaml", "config:\n  app:authToken: setting-5e19\n")
    write("old")
    tree.commit()
    return write


def test_no_form_shows_a_secret_of_a_program(project, review, secrets, tree):
    project("new")
    files = [part for form in FORMS[1:] for part in (f"--{form}", f"out.{form}")]
    answer = review("--config", "app:password=given-5e20", *ALLOWED, *files)
    assert answer.code == 0, answer.err
    written = "".join((tree.root / f"out.{form}").read_text() for form in FORMS[1:])
    assert shows(answer.out + answer.err + written, secrets) == set()
    assert "d: new" in answer.out


@pytest.mark.parametrize(
    "end",
    [
        'raise ValueError(os.environ["REGISTRY_TOKEN"] + " " + config.get("plain") + os.environ["SSH_KEY"])',
        'import sys; sys.exit(os.environ["DB_PASSWORD"] + config.get("authToken"))',
        "raise ValueError('x' * 1990 + os.environ['REGISTRY_TOKEN'])",
        "os._exit(3)",
    ],
)
def test_a_program_that_fails_shows_no_secret(project, review, secrets, end: str):
    project("new", end)
    answer = review("--config", "app:password=given-5e20", *ALLOWED)
    assert (answer.code, answer.out) == (2, "")
    assert shows(answer.err, (*secrets, "env-tok")) == set()


def test_a_chart_that_helm_refuses_shows_no_secret(tree, review, secrets, monkeypatch: pytest.MonkeyPatch):
    helm = tree.write(
        "bin/helm",
        f"#!{sys.executable}\nimport sys\nprint('Error: values: ' + sys.stdin.read(), file=sys.stderr)\nsys.exit(1)\n",
    )
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", str(helm.parent), prepend=":")
    tree.write("chart/Chart.yaml", "name: chart\nversion: 1.0.0\n")
    tree.write("values.yaml", "database: {adminPassword: helm-value-5e17, tokens: [helm-list-5e16]}\n")
    tree.commit()
    answer = review("chart", "--values", "values.yaml")
    assert answer.code == 2
    assert "chart-not-rendered" in answer.codes
    assert shows(answer.err, secrets) == set()


def test_other_commands_hide_the_secrets_of_errors(project, command, secrets, tree):
    project("new", 'raise ValueError(os.environ["REGISTRY_TOKEN"])')
    assert shows(command("synth", cwd=Path(tree.root)).err.partition("✗")[2], secrets) == set()
