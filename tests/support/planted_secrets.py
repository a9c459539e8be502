"""Secrets as people write them into objects by mistake.

Secrets are made up here, of characters that say nothing, so that none of them stands in this file as it would in a
real one: scanners of forges refuse such files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"


def made_up(label: str, length: int, letters: str = _LETTERS) -> str:
    """Characters without a meaning, always the same ones for a label."""
    digest = hashlib.shake_256(label.encode()).digest(length)
    return "".join(letters[byte % len(letters)] for byte in digest)


@dataclass(frozen=True)
class Planted:
    """One secret in one object.

    Args:
        name: What it is.
        secret: Gives it for a side.
        manifest: Gives the object that holds it.
    """

    name: str
    secret: Callable[[str], str]
    manifest: Callable[[str, str], Manifest]

    def shown(self, text: str, side: str) -> bool:
        """Whether *text* shows the secret of *side*, or half of it."""
        secret = self.secret(side)
        half = len(secret) // 2
        parts = [secret] if len(secret) < 16 else [secret[:half], secret[half:]]
        return any(part in text or json.dumps(part)[1:-1] in text for part in parts)


def _config_map(data: dict[str, str]) -> Callable[[str, str], Manifest]:
    return lambda name, secret: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {key: value.replace("@@", secret) for key, value in data.items()},
    }


def _annotation(key: str, value: str) -> Callable[[str, str], Manifest]:
    return lambda name, secret: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": {key: value.replace("@@", secret)}},
    }


def _pod(container: dict[str, Any], field: str = "containers") -> Callable[[str, str], Manifest]:
    def make(name: str, secret: str) -> Manifest:
        filled = json.loads(json.dumps(container).replace("@@", json.dumps(secret)[1:-1]))
        main = {"name": "main", "image": "registry.example/main:1"}
        spec: dict[str, Any] = {"containers": [main], field: [{**main, **filled}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    return make


def _env(key: str, value: str = "@@") -> Callable[[str, str], Manifest]:
    return _pod({"env": [{"name": key, "value": value}]})


def _custom(spec: Any) -> Callable[[str, str], Manifest]:
    return lambda name, secret: {
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "metadata": {"name": name},
        "spec": json.loads(json.dumps(spec).replace("@@", json.dumps(secret)[1:-1])),
    }


def _word(label: str, length: int = 18) -> Callable[[str], str]:
    return lambda side: made_up(f"{label} {side}", length)


def _in_two(label: str, sign: str) -> Callable[[str], str]:
    return lambda side: f"{made_up(f'{label} {side}', 9)}{sign}{made_up(f'{label} {side} more', 9)}"


def _token(label: str, prefix: str, length: int, letters: str = _LETTERS) -> Callable[[str], str]:
    return lambda side: prefix + made_up(f"{label} {side}", length, letters)


def _jwt(side: str) -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    return ".".join((part('{"alg":"HS256"}'), part(json.dumps({"sub": side})), made_up(side, 43)))


def _base64(text: str) -> Callable[[str], str]:
    return lambda side: base64.b64encode(text.replace("@@", made_up(text + side, 16)).encode()).decode()


def _pem(kind: str) -> str:
    return f"-----BEGIN {kind}-----\n@@\n-----END {kind}-----\n"


_KEY = "PRIVATE " + "KEY"
HEX = "0123456789abcdef"
_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def _planted() -> Iterator[Planted]:
    cases: list[tuple[str, Callable[[str], str], Callable[[str, str], Manifest]]] = [
        # What the attacker of the issue planted, or close to it.
        ("key password", _word("1", 9), _config_map({"password": "@@"})),
        ("key DB_PASS", _word("2", 9), _config_map({"DB_PASS": "@@"})),
        (
            "connection string",
            _word("3"),
            _config_map({"db": "Server=tcp:db,1433;User ID=sa;Password=@@;Encrypt=True"}),
        ),
        ("bearer in a file", _word("4"), _config_map({"headers": "Accept: */*\nAuthorization: Bearer @@\n"})),
        (
            "basic in a file",
            _base64("ada:@@"),
            _config_map({"headers": "Authorization: Basic @@\nAccept: */*\n"}),
        ),
        ("PEM in a file", _word("5", 64), _config_map({"id": _pem("RSA " + _KEY)})),
        (
            "aws credentials",
            _word("6", 40),
            _config_map({"aws.ini": "[default]\naws_secret_access_key = @@\nregion = eu-1\n"}),
        ),
        ("JSON", _word("7", 11), _config_map({"app.json": '{"db": {"user": "ada", "password": "@@"}}'})),
        ("annotation by name", _word("8", 11), _annotation("example.com/api-token", "@@")),
        ("annotation with a text", _word("9"), _annotation("example.com/note", "use password=@@ for now")),
        ("annotation with a PEM", _word("10", 64), _annotation("example.com/tls", _pem(_KEY))),
        ("env DB_PASS", _word("11", 9), _env("DB_PASS")),
        ("env of a URL", _word("12"), _env("DATABASE", "postgresql://ada:@@@db.example:5432/x")),
        ("env of a connection string", _word("13"), _env("DB", "Host=db;Username=ada;Password=@@")),
        (
            "slack webhook",
            _word("14", 24),
            _env("NOTIFY", "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/@@"),
        ),
        (
            "SAS signature",
            lambda side: made_up("15" + side, 43) + "%3D",
            _env("BLOBS", "https://a.blob.core.windows.net/c?sv=2024-11-04&sr=c&sig=@@"),
        ),
        ("option and value", _word("16", 9), _pod({"args": ["serve", "--password", "@@", "--verbose"]})),
        (
            "mysql -p",
            _word("17", 9),
            _pod({"command": ["mysql", "-uroot", "-p@@", "-e", "select 1"]}),
        ),
        (
            "curl -H",
            _word("18"),
            _pod({"command": ["curl", "-H", "Authorization: Bearer @@", "https://api.example"]}),
        ),
        ("curl -u", _word("19", 9), _pod({"command": ["curl", "-u", "ada:@@", "https://api.example"]})),
        # Webhooks.
        (
            "discord webhook",
            _word("20", 68),
            _config_map({"alerts": "url: https://discord.com/api/webhooks/123456789012345678/@@"}),
        ),
        (
            "teams webhook",
            _token("21", "", 32, HEX),
            _config_map({"alerts": "https://x.webhook.office.com/webhookb2/a@b/IncomingWebhook/@@/c"}),
        ),
        ("webhook by name", _word("22"), _env("ALERT_WEBHOOK_URL", "https://alerts.example/in/@@")),
        (
            "telegram bot",
            _word("23", 35),
            _config_map({"url": "https://api.telegram.org/bot1234567890:@@/sendMessage"}),
        ),
        # Keys of clouds.
        ("aws key id", _token("24", "AK" + "IA", 16, _UPPER), _env("WHO", "@@")),
        ("aws in env", _word("25", 40), _env("AWS_SECRET_ACCESS_KEY")),
        (
            "azure storage",
            lambda side: made_up("26" + side, 86) + "==",
            _env("STORAGE", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@@;EndpointSuffix=x"),
        ),
        (
            "service bus",
            lambda side: made_up("27" + side, 43) + "=",
            _config_map({"bus": "Endpoint=sb://b.example/;SharedAccessKeyName=root;SharedAccessKey=@@"}),
        ),
        (
            "gcp service account",
            _word("28", 120),
            _config_map(
                {
                    "sa.json": json.dumps(
                        {
                            "type": "service_account",
                            "private_key_id": made_up("id", 40, HEX),
                            "private_key": _pem(_KEY),
                        }
                    )
                }
            ),
        ),
        ("google API key", _token("29", "AI" + "za", 35), _env("MAPS", "@@")),
        # Tokens by their shape, where no name helps.
        ("JWT", _jwt, _env("SESSION", "@@")),
        ("github", _token("30", "gh" + "p_", 36), _config_map({"note": "clone with @@ please"})),
        ("github, fine-grained", _token("31", "github" + "_pat_", 82), _env("WHO", "@@")),
        ("gitlab", _token("32", "gl" + "pat-", 20), _env("WHO", "@@")),
        ("pypi", _token("33", "py" + "pi-AgEIcHlwaS5vcmc", 80), _env("WHO", "@@")),
        ("npm", _token("34", "np" + "m_", 36), _env("WHO", "@@")),
        (
            "slack",
            lambda side: "xo" + "xb-" + made_up("35" + side, 12, _DIGITS) + "-" + made_up("36" + side, 24),
            _env("WHO", "@@"),
        ),
        ("hugging face", _token("37", "hf" + "_", 34), _env("WHO", "@@")),
        ("nvidia NGC", _token("38", "nva" + "pi-", 64), _env("WHO", "@@")),
        ("stripe", _token("39", "sk" + "_live_", 24), _env("WHO", "@@")),
        ("openai", _token("40", "s" + "k-proj-", 74), _env("WHO", "@@")),
        ("vault", _token("41", "hv" + "s.", 90), _env("WHO", "@@")),
        ("docker hub", _token("42", "dckr" + "_pat_", 27), _env("WHO", "@@")),
        # Files of programs.
        (
            ".npmrc",
            _word("43", 36),
            _config_map({".npmrc": "//registry.example/:_authToken=@@\nalways-auth=true\n"}),
        ),
        (".netrc", _word("44", 12), _config_map({".netrc": "machine api.example login ada password @@\n"})),
        ("my.cnf", _word("45", 12), _config_map({"my.cnf": "[client]\nuser = root\npassword = @@\n"})),
        (
            ".dockerconfigjson",
            _base64("ada:@@"),
            _config_map({".dockerconfigjson": '{"auths": {"registry.example": {"auth": "@@"}}}'}),
        ),
        (
            "kubeconfig, token",
            _word("46", 40),
            _config_map({"config": "users:\n- name: ada\n  user:\n    token: @@\n"}),
        ),
        (
            "kubeconfig, key",
            _base64(_pem("EC " + _KEY)),
            _config_map({"config": "users:\n- name: ada\n  user:\n    client-key-data: @@\n"}),
        ),
        ("YAML", _word("47", 12), _config_map({"values.yaml": "db:\n  user: ada\n  password: @@ # old\n"})),
        (
            "YAML, a phrase",
            lambda side: f"{made_up('48' + side, 7)} {made_up('49' + side, 7)}",
            _config_map({"values.yaml": "db:\n  passphrase: @@\n  user: ada\n"}),
        ),
        (
            "YAML, a block",
            _word("50", 12),
            _config_map({"values.yaml": "db:\n  password: |\n    @@\n  user: ada\n"}),
        ),
        ("TOML", _word("51", 12), _config_map({"app.toml": '[db]\napi_key = "@@"\nuser = "ada"\n'})),
        ("properties", _word("52", 12), _config_map({"app.properties": "spring.datasource.password=@@\n"})),
        ("XML", _word("53", 12), _config_map({"settings.xml": "<server><password>@@</password></server>"})),
        (
            "site.xml",
            _word("54", 12),
            _config_map(
                {"core-site.xml": "<property><name>fs.s3a.secret.key</name><value>@@</value></property>"}
            ),
        ),
        ("script", _word("55", 12), _config_map({"run.sh": "#!/bin/sh\nexport API_TOKEN=@@\nexec app\n"})),
        (
            "python",
            _word("56", 12),
            _config_map({"settings.py": "DATABASES = {'default': {'PASSWORD': '@@'}}\n"}),
        ),
        ("base64 of a file", _base64("db:\n  password: @@\n"), _config_map({"blob": "@@"})),
        (
            "binary data",
            _base64("password=@@\n"),
            lambda name, secret: {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "binaryData": {"file": secret},
            },
        ),
        # Addresses.
        ("JDBC", _word("57", 12), _env("DB_URL", "jdbc:mysql://db.example/x?user=ada&password=@@&ssl=true")),
        ("JDBC of Oracle", _word("58", 12), _env("DB_URL", "jdbc:oracle:thin:scott/@@@//db.example:1521/x")),
        ("mongodb", _word("59", 12), _env("DB_URL", "mongodb+srv://ada:@@@cluster.example/x?w=majority")),
        ("redis", _word("60", 12), _env("CACHE", "redis://:@@@cache.example:6379/0")),
        ("amqp", _word("61", 12), _env("QUEUE", "amqp://ada:@@@queue.example/vhost")),
        ("token as the user", _token("62", "", 32, HEX), _env("SENTRY", "https://@@@o1.ingest.example/42")),
        (
            "git with a token",
            _word("63", 30),
            _pod({"args": ["clone", "https://oauth2:@@@git.example/a.git"]}),
        ),
        (
            "signed URL",
            _token("64", "", 64, HEX),
            _env("MODEL", "https://s3.example/m?X-Amz-Expires=60&X-Amz-Signature=@@"),
        ),
        # Command lines.
        (
            "PGPASSWORD",
            _word("65", 9),
            _pod({"command": ["sh", "-c", "PGPASSWORD=@@ psql -h db -c 'select 1'"]}),
        ),
        ("export", _word("66", 9), _pod({"args": ["-c", "export TOKEN=@@\nexec serve --port 80"]})),
        ("mysql in a shell", _word("67", 9), _pod({"command": ["sh", "-c", "mysql -u root -p@@ -e 'x'"]})),
        (
            "curl in a shell",
            _word("68"),
            _pod({"command": ["sh", "-c", 'curl -sH "Authorization: Bearer @@" https://api.example']}),
        ),
        (
            "curl --user",
            _word("69", 9),
            _pod({"command": ["sh", "-c", "curl --user ada:@@ https://x.example"]}),
        ),
        (
            "X-Api-Key",
            _word("70"),
            _pod({"command": ["curl", "--header", "X-Api-Key: @@", "https://api.example"]}),
        ),
        (
            "--from-literal",
            _word("71", 9),
            _pod({"args": ["create", "secret", "generic", "x", "--from-literal=password=@@"]}),
        ),
        ("helm --set", _word("72", 9), _pod({"args": ["upgrade", "--set", "db.password=@@,replicas=2"]})),
        ("sshpass", _word("73", 9), _pod({"command": ["sshpass", "-p", "@@", "ssh", "ada@host.example"]})),
        ("docker login", _word("74", 12), _pod({"args": ["docker login -u ada -p @@ registry.example"]})),
        ("redis-cli", _word("75", 12), _pod({"command": ["redis-cli", "-a", "@@", "ping"]})),
        ("-p alone", lambda side: "s3" + made_up("76" + side, 8), _pod({"args": ["-uroot", "-p@@"]})),
        ("--api-key in a shell", _word("77", 12), _pod({"args": ["-c", "serve --api-key @@ --port 80"]})),
        (
            "quoted option",
            lambda side: f"{made_up('78' + side, 6)} {made_up('79' + side, 6)}",
            _pod({"args": ["-c", "serve --password '@@' --port 80"]}),
        ),
        # Other places of objects.
        (
            "init container",
            _word("80", 9),
            _pod({"env": [{"name": "ADMIN_PASSWORD", "value": "@@"}]}, "initContainers"),
        ),
        (
            "probe",
            _word("81"),
            _pod(
                {
                    "livenessProbe": {
                        "httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": "@@"}]}
                    }
                }
            ),
        ),
        (
            "probe's command",
            _word("82", 9),
            _pod({"readinessProbe": {"exec": {"command": ["redis-cli", "--pass", "@@", "ping"]}}}),
        ),
        (
            "lifecycle",
            _word("83", 9),
            _pod({"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "TOKEN=@@ leave"]}}}}),
        ),
        ("field password", _word("84", 9), _custom({"users": [{"name": "ada", "password": "@@"}]})),
        ("field clientSecret", _word("85", 9), _custom({"oauth": {"clientId": "ada", "clientSecret": "@@"}})),
        ("list of tokens", _word("86", 9), _custom({"apiTokens": ["@@"]})),
        ("pair of a list", _word("87", 9), _custom({"parameters": [{"name": "db.password", "value": "@@"}]})),
        ("pair by key", _word("88", 9), _custom({"settings": [{"key": "API_TOKEN", "value": "@@"}]})),
        ("headers", _word("89"), _custom({"headers": {"Authorization": "@@", "Accept": "*/*"}})),
        ("cookie", _word("90"), _custom({"headers": {"Cookie": "session=@@"}})),
        ("a file in a field", _word("91", 12), _custom({"config": "global:\n  smtp_auth_password: @@\n"})),
        # Signs in a secret, and spellings that a search for simple ones passes by.
        ("field password1", _word("92", 9), _custom({"password1": "@@"})),
        ("env API_KEY2", _word("93", 9), _env("API_KEY2")),
        ("key apiKey2", _word("94", 9), _config_map({"app.properties": "apiKey2=@@\n"})),
        ("a user vault", _word("95", 12), _env("DB_URL", "postgres://vault:@@@db.example/x")),
        (
            "curl --user in a list",
            _word("96", 9),
            _pod({"command": ["curl", "--user", "ada:@@", "api.example"]}),
        ),
        ("curl -u without a blank", _word("97", 9), _pod({"args": ["curl -uada:@@ https://api.example"]})),
        ("YAML, an ampersand", _in_two("98", "&"), _config_map({"values.yaml": "password: @@\nuser: ada\n"})),
        ("env file, an angle", _in_two("99", "<"), _config_map({"app.env": "DB_PASSWORD=@@\n"})),
        ("YAML, a quote in it", _in_two("100", '"'), _config_map({"values.yaml": "password: @@\n"})),
        ("properties, a phrase", _in_two("101", " "), _config_map({"app.properties": "password=@@\n"})),
        ("YAML, a doubled quote", _in_two("102", "''"), _config_map({"values.yaml": "password: '@@'\n"})),
        ("YAML, an anchor", _word("103", 12), _config_map({"values.yaml": "password: &a @@\nuser: ada\n"})),
        (
            "YAML, a block with CRLF",
            _word("104", 12),
            _config_map({"values.yaml": "db:\r\n  password: |\r\n    @@\r\n  user: ada\r\n"}),
        ),
        (
            "YAML, a list with CRLF",
            _word("105", 12),
            _config_map({"values.yaml": "passwords:\r\n- @@\r\nuser: ada\r\n"}),
        ),
        (
            "YAML, the next line",
            _word("106", 12),
            _config_map({"values.yaml": "password:\n  @@\nuser: ada\n"}),
        ),
        ("INI, in columns", _word("107", 12), _config_map({"app.ini": "password               = @@\n"})),
        (
            "XML, an attribute",
            _word("108", 12),
            _config_map({"a.xml": '<password encrypted="no">@@</password>'}),
        ),
        (
            "XML, a section",
            _word("109", 12),
            _config_map({"a.xml": "<password><![CDATA[@@]]></password>"}),
        ),
        ("begins like a public key", _token("110", "ssh-", 9), _custom({"password": "@@"})),
        ("option, a dash first", _token("111", "-", 9), _pod({"args": ["serve", "--password", "@@"]})),
        ("a pair by itself", _word("113", 9), _custom({"parameter": {"name": "db-password", "value": "@@"}})),
        (
            "a pair with a mapping",
            _word("114", 9),
            _custom({"a": {"name": "db-password", "value": {"x": "@@"}}}),
        ),
        ("value of a password", _word("116", 9), _custom({"password": {"value": "@@"}})),
        ("passwords by user", _word("117", 9), _custom({"passwords": {"ada": "@@"}})),
        ("tokens by user", _word("118", 9), _custom({"tokens": {"ci": ["@@"]}})),
        ("option, a phrase", _in_two("112", " "), _pod({"args": ["serve", "--password=@@", "--verbose"]})),
    ]
    for name, secret, manifest in cases:
        yield Planted(name, secret, manifest)


PLANTED = tuple(_planted())
