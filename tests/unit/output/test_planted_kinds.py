from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.errors import Problem
from dra_infra.markers import SECRET
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import SecretMask
from tests.support.planted_kinds import KINDS, PLACES, PLACES_OF_TOKENS, Kind, claim, filled

DATA = Path(os.environ.get("DRA_INFRA_TESTDATA") or "not-named")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def mask() -> SecretMask:
    return report_mask()


def shown(kind: Kind, label: str, mask: SecretMask) -> list[str]:
    """The places in which a secret of *kind* shows."""
    example = filled(kind.line, label)
    places = {**PLACES, **PLACES_OF_TOKENS} if kind.is_token else PLACES
    found = [
        where
        for where, place in places.items()
        if example.shown(json.dumps(mask.manifest(place(example.line))))
    ]
    message = f'Invalid value: "{example.line}": program raised {example.line!r}'
    problem = mask.problem(
        Problem(path="ConfigMap a.data.file", code="c", message=message, hint=example.line)
    )
    return [*found, *(["a problem"] if example.shown(problem.message + problem.hint) else [])]


def test_there_are_kinds_enough_and_each_has_a_name_of_its_own():
    rules = [kind.rule for kind in KINDS]
    assert len(rules) == len(set(rules)) >= 300
    assert sum(kind.is_token for kind in KINDS) >= 150


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.rule)
def test_a_kind_is_hidden_wherever_it_is_planted(kind: Kind, mask: SecretMask):
    assert shown(kind, kind.rule, mask) == []


@given(kind=st.sampled_from(KINDS), label=st.integers(0, 2**64))
def test_whatever_is_random_in_a_kind_it_is_hidden(kind: Kind, label: int):
    assert shown(kind, str(label), _MASK) == []


_MASK = report_mask()

SUBSCRIPTS = (
    *(
        "d['password'] = '@@'",
        'd["password"] = "@@"',
        "ENV['API_TOKEN'] = '@@'",
        "$config['db']['password'] = '@@';",
    ),
    *(
        "$env:API_TOKEN = '@@'",
        "m[password]=@@",
        "user.password = '@@'",
        "$h{password} = '@@';",
        "d['password'] ||= '@@'",
    ),
    *(
        "define('DB_PASSWORD', '@@');",
        'os.environ.setdefault("DB_PASSWORD", "@@")',
        "setenv('API_TOKEN', '@@', 1)",
    ),
    *(
        'let password: &str = "@@";',
        'char password[] = "@@";',
        'String PASSWORD = "@@";',
        'password: str = "@@"',
    ),
    *(
        "client.set_password('@@')",
        'builder.withApiKey("@@")',
        'connect("db", password="@@")',
        'password <- "@@"',
    ),
    *(
        "ENV DB_PASSWORD @@",
        "set -x API_TOKEN @@",
        "setenv API_TOKEN @@",
        "SetEnv API_TOKEN @@",
        "DB_PASSWORD ?= @@",
    ),
    *(
        "npm config set //registry.example/:_authToken @@",
        "git config --global a.token @@",
        "heroku config:set A_TOKEN=@@",
    ),
    *(
        "-Dspring.datasource.password=@@",
        "-DapiKey=@@",
        "requirepass @@",
        "  masterauth @@",
        "user ada insecure-password @@",
    ),
    *(
        'proxy_set_header Authorization "Basic @@";',
        'AUTH: "Bearer @@"',
        "AUTH: Bearer @@",
        "export REDISCLI_AUTH=@@",
    ),
    *(
        '<entry key="db.password">@@</entry>',
        "<key>password</key><string>@@</string>",
        '<string name="api_key">@@</string>',
    ),
    *(
        "PresharedKey = @@",
        'psk="@@"',
        "wpa_passphrase=@@",
        "kennwort: @@",
        "mnemonic: '@@'",
        "unseal_key: @@",
    ),
)
"""Ways to write a value below a name that says that it is secret."""


@pytest.mark.parametrize("line", SUBSCRIPTS)
def test_a_value_below_a_name_is_hidden_however_it_is_written(line: str, mask: SecretMask):
    for text in (line, f"#!/bin/sh\nset -e\n{line}\nexec serve --port 80\n"):
        assert mask.text(text.replace("@@", "hunTer2x9")) == text.replace("@@", "[secret]").replace(
            "Basic [secret]", "[secret]"
        ).replace("Bearer [secret]", "[secret]")


EXPRESSIONS = (
    *("device.attributes['a.example'].password == '@@'", "device.attributes['a.example'].apiKey != '@@'"),
    *(
        "'@@' == device.attributes['a.example'].clientSecret",
        "device.attributes['a.example'].password in ['@@', 'b']",
    ),
    *(
        "device.attributes['a.example'].password.startsWith('@@')",
        "device.attributes['a.example'].?token.orValue('@@') == ''",
    ),
    *('has(device.attributes["a"].secretKey) && device.attributes["a"].secretKey == "@@"', "password('@@')"),
    *("device.driver == 'postgres://ada:@@@db.example/x'", "device.driver.matches('password=@@')"),
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_secret_in_an_expression_of_cel_is_hidden(expression: str, mask: SecretMask):
    manifest = claim(expression.replace("@@", "hunTer2x9"))
    assert "hunTer2x9" not in json.dumps(mask.manifest(manifest))


SHOWN_EXPRESSIONS = (
    "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3' && device.driver == 'gpu.nvidia.com'",
    "device.attributes['gpu.nvidia.com'].uuid == 'GPU-6f9619ff-8b86-d011-b42d-00c04fc964ff'",
    "'a100' in device.attributes['gpu.nvidia.com'].tokens && device.capacity['gpu.nvidia.com'].memory >= quantity('80Gi')",
    "device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('550.54.15'))",
)


@pytest.mark.parametrize("expression", SHOWN_EXPRESSIONS)
def test_an_expression_without_a_secret_shows(expression: str, mask: SecretMask):
    assert mask.manifest(claim(expression)) == claim(expression)


ORDINARY = (
    *(
        "sha256:" + filled("{h64}", "a").line,
        filled("{h8}-{h4}-{h4}-{h4}-{h12}", "b").line,
        filled("{h40}", "c").line,
    ),
    *(
        "registry.example/main:1@sha256:" + filled("{h64}", "d").line,
        "main-" + filled("{l10}-{l5}", "e").line,
    ),
    *("sha512-" + filled("{b86}==", "f").line, "GPU-" + filled("{h8}-{h4}-{h4}-{h4}-{h12}", "g").line),
    *(
        "gpu-operator-node-feature-discovery-worker",
        "nvidia.com/mig-1g.10gb.me",
        "projects/a/locations/b/keyRings/c",
    ),
    *(
        "sk-learn-and-its-friends-of-the-service",
        "key-management-service-of-the-cluster",
        "s.getHttpConnectionFactory()",
    ),
    *(
        "the token of the service is missing",
        "kubectl get secret db-password -o yaml",
    ),
    *(
        "mysql -h db -e 'select 1'",
        'mysql -p"$MYSQL_PASSWORD"',
        "unzip -p a.zip",
        "docker run -p 8080:80 a",
        "ssh -p 2222 a",
    ),
    *(
        "net use",
        "curl -o a -L https://a.example",
        "openssl x509 -in a.crt -noout",
    ),
    *(
        "requests.get(url, auth=self.auth)",
        "if token.kind != kind:",
        "assert a['secrets'] == sorted(b['secrets'])",
    ),
    *('k8s.core.v1.Secret("database")', 'pulumi.Config().require_secret("password")', 'getenv("API_TOKEN")'),
    *(
        "sqlplus /nolog",
        "vault login -method=kubernetes",
        "htpasswd -c file ada",
        "password required",
        "ada@db.example:/srv",
    ),
    *(
        "12:30@office",
        "git@github.example:a/b.git",
        "2001:0:db8:85a3::1",
        "{plain}]{port}",
        "path/{sha256}/file",
    ),
)
"""Texts without a secret that look a little as if they had one."""


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_shows(text: str, mask: SecretMask):
    assert mask.text(text) == text
    assert mask.text(f"a\n{text}\nb") == f"a\n{text}\nb"
    assert mask.values({"note": text, "args": text.split()}) == {"note": text, "args": text.split()}


def test_opaque_configurations_and_certificates_in_base64_show(mask: SecretMask):
    parameters = base64.b64encode(json.dumps({"sharing": {"strategy": "TimeSlicing"}}).encode()).decode()
    certificate = base64.b64encode(b"0\x82\x03\x01" + b"0\x82\x02\x01" + bytes(range(256)) * 3).decode()
    plain = {"parameters": parameters, "caBundle": certificate, "random": filled("{b400}", "random").line}
    assert mask.values(plain) == plain


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_private_key_in_der_is_hidden(version: int, mask: SecretMask):
    key = base64.b64encode(b"0\x82\x04\xbd\x02\x01" + bytes([version]) + bytes(range(256)) * 4).decode()
    assert mask.values({"file": key}) == {"file": SECRET}


def test_private_members_of_a_web_key_are_hidden(mask: SecretMask):
    key = {
        "kty": "RSA",
        "kid": "a",
        "n": "public-part-of-it",
        "e": "AQAB",
        "d": "private-part-of-it",
        "p": "another-part",
    }
    assert mask.values({"keys": [key]}) == {"keys": [{**key, "d": SECRET, "p": SECRET}]}


def third_party() -> list[tuple[str, dict[str, Any]]]:
    files = sorted(file for file in DATA.rglob("*") if file.suffix in {".yaml", ".yml", ".json"})
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = [(file, document) for file in files for document in yaml.load_all(file.read_text(), loader)]
    return [(file.name, document) for file, document in found if isinstance(document, dict)]


def test_no_value_of_other_peoples_charts_and_definitions_is_hidden(mask: SecretMask):
    objects = third_party()
    if not objects:
        pytest.skip(
            f"{DATA} has no objects: set DRA_INFRA_TESTDATA to the folder with chart-values/ and crds/"
        )
    hidden = [name for name, document in objects if mask.manifest(document) != document]
    assert hidden == []


def test_files_of_the_examples_are_hidden_in_no_line_but_these(mask: SecretMask):
    files = [file for file in sorted((ROOT / "examples").rglob("*.yaml")) if file.is_file()]
    lines = {line for file in files for line in file.read_text().splitlines()}
    assert len(lines) > 500
    assert sorted(line for line in lines if mask.text(line) != line) == []
