"""Names that say that a value is secret: of variables, settings, fields, keys, headers and options.

There are two rules. `is_secret_name` is for places where people put secrets, such as the environment: there a value too many
is hidden rather than one too few. `is_secret_value` is for all others, where `key`, `secretName` and `tokenizer` stand in
every second object, and looks at the value as well.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from dra_infra.kubernetes.api import UNKNOWN, plain_text
from dra_infra.markers import CHANGED_SECRET, SECRET

ITEM: Final = "\x1f"
"""Stands between the items of a list of arguments that are read as one text."""

_NAME: Final = re.compile(
    r"TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|(?:ACCESS|API|PRIVATE)KEY|(?:^|[_.-])(?:PASS|PW)\d*(?:$|[_.-])|[A-Z]PASS\d*$"
    r"|WEBHOOK|CONN(?:ECTION)?_?STR|(?:^|[_.-])(?:KEY|PWD)S?\d*(?:$|[_.-])|KEY\d*$"
)
_NO_SECRET: Final = re.compile(r"(?:BY|COM|SUR|TRES)PASS\d*$|TOKENIZ")
_COUNT: Final = re.compile(r"(?:^|_)(?:MAX|MIN|NUM)_")
"""What stands in front of TOKENS where the value is how many."""
_FOLDERS: Final = ("PWD", "OLDPWD")
"""Variables of every shell for the working folder (POSIX, cd): by their end they look like a password."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS: Final = re.compile(r"[^A-Za-z0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRETS: Final = re.compile(
    r".*(?:PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|PASSWORT|KENNWORT|MOTDEPASSE|CONTRASENA|SENHA|SECRETS?|CREDENTIALS?|TOKENS?)$"
    r"|PASS|(?!BY|COM|ENCOM|SUR|TRES|OVER|UNDER).+PASS|PWD|PW|(?:ROOT|BIND|ADMIN|USER|DB|MASTER|PROXY|LDAP|SASL|SMTP|ROOTBIND)PW"
    r"|CREDS|AUTHORIZATION|(?:SET)?COOKIE|PSK|MNEMONIC|SEEDPHRASE|MASTERAUTH|BEARER"
    r"|.*(?:API|ACCESS|SECRET|PRIVATE|AUTH|ACCOUNT|ENCRYPTION|SIGNING|SHARED|MASTER|LICENSE|HMAC)KEYS?$|CONNSTR|CONNECTIONSTRING"
)
"""Words that name a secret."""
_KEYS: Final = _words(
    "ACCESS ACCOUNT ADMIN AES AGE API APP APPLICATION AUTH BACKUP CIPHER CLIENT CONSUMER COOKIE CRYPT DECRYPT DECRYPTION DEPLOY"
    " ECDSA ED ENCRYPT ENCRYPTION FERNET FUNCTION GPG HMAC HOST INGEST INGESTION INTEGRATION JWT LICENSE MASTER PGP PRESHARED PRIVATE"
    " PRODUCT PSK RECOVERY RSA SECRET SERVICE SESSION SHARED SIGNING SSH STORAGE SUBSCRIPTION TLS UNSEAL VAULT WEBHOOK"
    " WEP WIREGUARD WPA"
)
"""Words before KEY that make it one that is kept secret."""
_PASSWORD_OF: Final = _words("CACHE KEYDB MASTER MQTT REDIS REDISCLI VALKEY VALKEYCLI")
"""Words before AUTH where the value is a password."""
_SCHEMED: Final = re.compile(
    r"(?:basic|bearer|token|digest|apikey|negotiate|splunk|genie[\w-]*)\s+\S", re.IGNORECASE
)
"""The beginning of a header that authenticates."""
MAKERS: Final = _words(
    "ABUSEIPDB ADAFRUIT AIRTABLE AIVEN ALGOLIA AMPLITUDE ASANA ASSEMBLYAI BITBUCKET BITLY BITRISE BITTREX CIRCLECI"
    " CIVO CLOUDFLARE CODECOV COHERE COINBASE CONFIGCAT CONFLUENT CONTENTFUL COVERALLS DATADOG DEEPGRAM DISCORD DISQUS"
    " DRONECI DROPBOX ELEVENLABS ETSY EXOSCALE FACEBOOK FASTLY FINICITY FINNHUB FLICKR FRESHBOOKS FULLSTORY GITEA"
    " GITTER GRAFANA GREPTILE GUMROAD HEROKU HONEYCOMB HUBSPOT IBMCLOUD INFOMANIAK INFURA INTERCOM JFROG JUMPCLOUD"
    " KAGI KLAVIYO KRAKEN KUCOIN LAUNCHDARKLY LIGHTON LINKEDIN LOGGLY LOOKER MAILCHIMP MAILGUN MAPBOX MATTERMOST"
    " MERAKI MESSAGEBIRD MISTRAL NETLIFY NEWRELIC NGROK NYTIMES OKTA OLLAMA OPENWEATHER OPSGENIE PAGERDUTY PINECONE"
    " PLAID PLIVO POSTMARK PRIVATEAI RAPIDAPI ROLLBAR SCALEWAY SENDBIRD SENTRY SNYK SQUARESPACE SUMOLOGIC TELNYX"
    " TRAVIS TRAVISCI TWILIO TWITCH TWITTER TYPEFORM UPSTAGE VERCEL VIRUSTOTAL VULTR WAKATIME WANDB WEATHERSTACK"
    " YANDEX ZENDESK ZOHO"
)
"""Makers of tokens without a form of their own: a random value under such a name is one."""
_NO_TOKENS: Final = _words(
    "BUILD CHECKSUM COMMIT DIGEST HASH IMAGE RELEASE REPO REPOSITORY REVISION SHA TAG UUID"
)
"""Last words of a name with a maker whose value is random and no token."""
_RANDOM: Final = re.compile(
    r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])(?:[0-9A-Za-z_]{20,512}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_CONNECTIONS: Final = (["CONNECTION", "STRING"], ["CONN", "STR"])
_ADDRESSES: Final = ("WEBHOOK", "URL", "URI", "ADDRESS", "ENDPOINT")
_TOKENS: Final = re.compile(r"(?:TOKEN|KEY|SECRET|CREDENTIAL)S?$")
_ABOUT: Final = _words(
    "ALGORITHM ALLOWED ANNOTATION AUDIENCE AUDIENCES CLASS COUNT DIR DIRECTORY DISABLED DURATION ENABLED ENDPOINT EXPIRATION"
    " EXPIRY FIELD FILE FILENAME FILES FOLDER FORMAT HEADER HOST ID IDS INTERVAL ISSUER LABEL LENGTH LIFETIME LIMIT LOCATION MAX"
    " METHOD MIN MODE MOUNT NAME NAMES NAMESPACE PATH PATHS POLICY PORT PREFIX PROVIDER REF REFERENCE REFS REQUIRED ROTATION"
    " SCOPE SECOND SECONDS SELECTOR SIZE SOURCE STORE SUFFIX TIMEOUT TTL TYPE URI URL USER USERNAME VARIABLE VERSION VOLUME"
)
"""Last words of a name that is about a secret, and whose value is none."""
_STRUCTURE: Final = _words(
    "ANNOTATIONS CONDITIONS DESCRIPTION ENCODING ITEMS KEY KEYS KIND LABELS METADATA OPTIONAL SPEC STATUS TEMPLATE"
)
"""Last words of a name of a field that says where something is, or holds other things than the one around it."""
_ELSEWHERE: Final = _words("CA CERT CERTIFICATE EXISTING IMAGE PULL TLS")
"""Words before SECRET where the value is the name of a Secret."""
_COUNTED: Final = _words("BATCHED MAX MIN NEW NUM PROMPT")
"""Words before TOKENS where the value is how many."""

_REFERENCE: Final = re.compile(
    r"\$\(.*|`.*`|\$\{\w+\}|\$[A-Z_]{2}[A-Z0-9_]*|\$\d|\$(?=\w*(?i:pass|pw|token|secret|key))\w++|\{\{.*\}\}|\{[\w.]*\}|%[sv]|<[\w .-]*>"
    r"|%\w+%|\*+|x{3,}|\.{3}|(?:ref\+|vault:|op://|env:|file:).*|(?:/[a-z0-9._-]+){2,}/?"
    r"|[a-z_]\w*(?:\.\w+)+[(\[].*|[a-z_]\w*\(\)?",
    re.DOTALL,
)
"""Where a secret is to be found, or a call that finds it."""
_LITERAL: Final = re.compile(
    r"[\"'](?=[A-Za-z+=]*+\d)(?=[a-z\d+=]*+[A-Z])(?=[A-Z\d+=]*+[a-z])[A-Za-z\d+=]{12,}[\"']"
)
"""What is random in a call, and so no name of something that holds a secret."""
_WORDS: Final = _words(
    "true false yes no on off none null nil undefined string str int integer number boolean bool optional required"
    " enabled disabled default auto basic any"
)
_KNOWN_TO_FEW: Final = re.compile(r"://[^/\s]+/\S*[\w-]{12}")
"""An address with something in it that nobody would guess."""
_LONGEST_ADDRESS: Final = 2**12
_PUBLIC: Final = re.compile(
    r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256))"
    r"(?:-cert-v01)?(?:@openssh\.com)?(?:\s|\Z)|-----BEGIN (?:CERTIFICATE|PUBLIC)"
)
"""Beginnings of certificates, and of public keys as OpenSSH writes them (PROTOCOL.certkeys, PROTOCOL.u2f)."""
_SMALL: Final = re.compile(r"-?\d{1,6}(?:\.\d+)?[a-zA-Z]{0,3}")


@lru_cache(maxsize=2**14)
def is_secret_name(name: str) -> bool:
    """True for the name of a variable, setting or value that holds a secret: `API_TOKEN`, `db-password`, `sshKey`."""
    if name in _FOLDERS:
        return False
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
    if words.endswith("TOKENS") and _COUNT.search(words, 0, len(words) - len("TOKENS")):
        return False
    return _NAME.search(words) is not None and _NO_SECRET.search(words) is None


def can_hold_secret(name: str) -> bool:
    """True for a name under which a value can be secret."""
    return _kind(name) != ""


def names_secret(name: str) -> bool:
    """True for a name that says that its value is secret, unless the value is a reference or the like."""
    return _kind(name) not in {"", "maker"}


def is_secret_value(name: str, value: str) -> bool:
    """True when *name* says that *value* is a secret, and it is not one that is elsewhere: `$(TOKEN)`, `/run/token`."""
    kind = _kind(name)
    if not kind or is_harmless_value(value):
        return False
    if kind == "pair":
        return is_basic_pair(value) or _SCHEMED.match(value) is not None
    if kind == "maker":
        return _RANDOM.fullmatch(value) is not None
    if kind == "address":
        # A longer one is searched from each of its beginnings, which takes too long.
        return len(value) > _LONGEST_ADDRESS or _KNOWN_TO_FEW.search(value) is not None
    # A number of tokens or of Secrets is none, as in a quota.
    return kind == "password" or _SMALL.fullmatch(value) is None


@lru_cache(maxsize=2**14)
def inherited_name(name: str, key: str) -> str:
    """The name by which a value is judged that is under *key*, in a mapping that is judged by *name*.

    Under `passwords` that is `passwords` for `ada`, which says nothing, and `secretName` for `secretName`.
    """
    words, around = _split(key), _split(name)
    if not around or _kind(name) == "" or _kind(key) != "":
        return key
    # `secretTemplate` and `tokenReview` are about something else than a secret.
    if _SECRETS.fullmatch(around[-1]) is None and around[-1] not in {"KEY", "KEYS"}:
        return key
    if words and (words[-1] in _ABOUT or words[-1] in _STRUCTURE or _is_elsewhere(words)):
        return key
    return name


_SHOWN_MARKERS: Final = frozenset(map(plain_text, (SECRET, CHANGED_SECRET, UNKNOWN)))


def is_harmless_value(value: str) -> bool:
    """True for a value that is no secret under any name: empty, a word like `true`, a reference, public or hidden."""
    text = value.strip()
    scheme = _SCHEMED.match(text)
    text = text[scheme.end() - 1 :] if scheme else text.removeprefix("pass:")
    return (
        not text
        or text.lower() in _WORDS
        or text in _SHOWN_MARKERS
        or _PUBLIC.match(text) is not None
        or (_REFERENCE.fullmatch(text) is not None and _LITERAL.search(text) is None)
    )


@lru_cache(maxsize=2**14)
def _kind(name: str) -> str:
    """The kind of secret under *name*: a `password`, a `token`, a `pair`, an `address`, one of a `maker`; empty for no secret."""
    words = _split(name)
    if not words or name in _FOLDERS:
        return ""
    last = words[-1]
    if last in {"AUTH", "HEADER", "HEADERS"}:
        return "password" if last == "AUTH" and not _PASSWORD_OF.isdisjoint(words) else "pair"
    if "WEBHOOK" in words and last in _ADDRESSES:
        return "address"
    if last in _ABOUT or _is_elsewhere(words):
        return ""
    if any(first in _KEYS and second in {"KEY", "KEYS"} for first, second in pairwise(words)):
        return "token"
    found = [word for word in words if _SECRETS.fullmatch(word)]
    if last in {"KEY", "KEYS"} or not (found or words[-2:] in _CONNECTIONS):
        return "maker" if not MAKERS.isdisjoint(words) and last not in _NO_TOKENS else ""
    return "token" if found and all(_TOKENS.search(word) for word in found) else "password"


def _split(name: str) -> list[str]:
    words = [word.upper() for word in _SEPARATORS.split(_CAMEL.sub("_", name[-200:])) if word]
    # `password1` is one, too.
    words = [word.rstrip("0123456789") or word for word in words]
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    return words


def _is_elsewhere(words: list[str]) -> bool:
    """True for words that name a Secret object, a checksum of a secret or a count of tokens, and no secret itself."""
    return (
        "CHECKSUM" in words
        or (words[-1] in {"SECRET", "SECRETS"} and not _ELSEWHERE.isdisjoint(words))
        or (words[-1] == "TOKENS" and not _COUNTED.isdisjoint(words))
    )


def is_basic_pair(value: str) -> bool:
    """True for a user and a password as the basic authentication of HTTP encodes them."""
    try:
        return b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False
