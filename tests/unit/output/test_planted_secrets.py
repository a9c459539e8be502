from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import SecretMask
from tests.support.planted_secrets import HEX, PLANTED, Planted, made_up

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def mask() -> SecretMask:
    return report_mask()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.name)
def test_a_planted_secret_is_hidden_and_its_change_shows(planted: Planted, mask: SecretMask):
    old, new = (planted.manifest("x", planted.secret(side)) for side in ("old", "new"))
    before, after, same = mask.manifest(old), mask.manifest(new, old), mask.manifest(new, new)
    assert not planted.shown(json.dumps(before), "old")
    assert not planted.shown(json.dumps(after), "new")
    assert "[secret] (changed)" in json.dumps(after)
    assert "(changed)" not in json.dumps(same)
    # What was masked is masked: a second time changes nothing.
    assert mask.manifest(after) == after


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.name)
def test_what_stands_beside_a_planted_secret_shows(planted: Planted, mask: SecretMask):
    plain = planted.manifest("x", planted.secret("new"))
    shown = json.dumps(mask.manifest(plain))
    texts = [
        each
        for each in (
            "ada",
            "db.example",
            "region = eu-1",
            "replicas=2",
            "--verbose",
            "registry.example/main:1",
            "--port 80",
        )
        if each in json.dumps(plain)
    ]
    assert [each for each in texts if each not in shown] == []


SHOWN: tuple[tuple[str, Any], ...] = (
    (
        "caBundle",
        base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode(),
    ),
    (
        "certificate",
        f"-----BEGIN CERTIFICATE-----\n{made_up('certificate', 64)}\n-----END CERTIFICATE-----\n",
    ),
    ("public", f"ssh-ed25519 {made_up('public', 68)} ada@example"),
    ("sshKey", f"ecdsa-sha2-nistp256 {made_up('public', 68)} ada@example"),
    ("image", f"registry.example/main@sha256:{made_up('digest', 64, HEX)}"),
    ("commit", made_up("commit", 40, HEX)),
    ("checksum/secret", made_up("checksum", 64, HEX)),
    ("uid", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
    ("GPU", "GPU-6f9619ff-8b86-d011-b42d-00c04fc964ff"),
    ("memory", "80Gi"),
    ("secretName", "database-password"),
    ("passwordSecretRef", "database-password"),
    ("existingSecret", "database-password"),
    ("tokenFile", "/var/run/secrets/token"),
    ("passwordKey", "password"),
    ("key", "nvidia.com/gpu"),
    ("topologyKey", "topology.kubernetes.io/zone"),
    ("tokenizer", "meta-llama/Llama-3.1-8B"),
    ("maxTokens", "4096"),
    ("expression", "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'"),
    ("args", ["--max-num-batched-tokens", "8192", "--tokenizer-mode", "auto", "--token-file", "/etc/token"]),
    ("args", ["--tokens-per-second=70", "--key-prefix", "nvidia", "-profile", "-p", "8080", "-p8080:80"]),
    ("args", ["--secret-name=database", "--password-file=/etc/password", "--password=$(DB_PASSWORD)"]),
    ("command", ["sh", "-c", 'mysql -p"$MYSQL_PASSWORD" -e "select 1"']),
    ("command", ["sh", "-c", "export TOKEN=$(cat /var/run/token) && exec serve"]),
    ("text", "basic authentication with a bearer token needs no password: see the docs"),
    ("url", "https://grafana.example:3000/d/abc?orgId=1&from=now-6h"),
    ("webhook", "https://webhook.example.svc:443/validate"),
    (
        "volume",
        {"secret": {"secretName": "db", "items": [{"key": "password", "path": "a"}], "optional": False}},
    ),
    ("source", {"secret": {"name": "database", "items": [{"key": "tls.crt", "path": "a", "mode": 256}]}}),
    ("valueFrom", {"secretKeyRef": {"name": "database", "key": "db-password", "optional": True}}),
    ("basicAuth", {"password": {"name": "database", "key": "db-password"}, "username": {"key": "user"}}),
    ("projected", {"serviceAccountToken": {"audience": "vault", "expirationSeconds": 3600000, "path": "a"}}),
    ("secretTemplate", {"labels": {"app": "database"}, "type": "Opaque"}),
    ("privateKey", {"algorithm": "RSA", "encoding": "PKCS1", "rotationPolicy": "Always", "size": 2048}),
    ("secrets", [{"name": "database", "namespace": "ml"}]),
    ("tokenRequests", [{"audience": "vault", "expirationSeconds": 3600000}]),
    ("tolerations", [{"key": "token", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]),
    ("env", [{"name": "TOKENIZERS_PARALLELISM", "value": "false"}, {"name": "MAX_TOKENS", "value": "4096"}]),
)
"""Fields that hold no secret, and must show."""


@pytest.mark.parametrize(("name", "value"), SHOWN)
def test_what_only_looks_like_a_secret_shows(name: str, value: Any, mask: SecretMask):
    for manifest in (
        {"kind": "Database", "spec": {name: value}},
        {"kind": "Pod", "metadata": {"annotations": {f"a/{name}": value}}},
    ):
        assert mask.manifest(manifest) == manifest
    if isinstance(value, str):
        text = f"{name}: {value}\n"
        assert mask.text(text) == text
        assert mask.text(value) == value


def lines_of_examples() -> list[str]:
    files = [
        file
        for file in sorted((ROOT / "examples").rglob("*"))
        if file.is_file() and file.suffix in {".yaml", ".json", ".py", ".md", ".txt", ".html"}
    ]
    return [line for file in files for line in file.read_text().splitlines()]


def test_at_most_one_line_of_the_examples_in_a_hundred_is_hidden_by_mistake(mask: SecretMask):
    lines = lines_of_examples()
    assert len(lines) > 3000
    hidden = [line for line in lines if mask.text(line) != line]
    assert len(hidden) <= len(lines) / 100, hidden
