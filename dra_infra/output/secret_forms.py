"""Find secrets by what is written around them: addresses, headers, statements, lines of files, private keys.

The table has one row per form. Its pattern calls the secret `v`; one of its signs, in small letters, is in every text
that has the form, so that most texts are searched for few forms. Its example is what the tests plant: what is random in
it is written as in `secret_tokens`.

All patterns are searched in linear time, for texts are foreign: what repeats is bounded, and a search starts at a sign
or at the beginning of a word.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from dra_infra.output.secret_names import is_basic_pair, is_harmless_value
from dra_infra.output.secret_tokens import Span, any_of


@dataclass(frozen=True)
class Form:
    """A form in which secrets are written.

    Args:
        kind: What it is.
        signs: Texts, one of which is in every text with the form; in small letters.
        expression: Finds the secret as `v`; a `password` that it names must be no reference, too.
        example: A text in this form.
        pair: Whether the secret must be a user and a password in base64.
    """

    kind: str
    signs: tuple[str, ...]
    expression: str
    example: str
    pair: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when a text has a sign of the form: most runs need few."""
        return re.compile(self.expression, re.IGNORECASE)


def _form(kind: str, signs: str, pattern: str, example: str, *, pair: bool = False) -> Form:
    return Form(kind, tuple(signs.split()), pattern, example, pair)


_BOUNDED: Final = r"[^\s\"'<>]"
_QUOTED: Final = r"\\{0,3}[\"'](?P<v>[^\"'\n]{1,1024})[\"']"

ADDRESSES: Final = (
    # A user may be called `vault` or `env`.
    _form(
        "password in an address",
        "://",
        r"(?<=://)(?P<v>[^\s/:@]{0,256}:(?P<password>[^\s/]{1,1024}))(?=@)",
        "postgres://ada:{a12}@db.example/x",
    ),
    _form(
        "token as the user of an address",
        "://",
        r"(?<=://)(?P<v>(?=[a-z_-]{0,64}\d)[\w-]{24,256})(?=@)",
        "https://{h32}@o1.ingest.example/42",
    ),
    _form(
        "JDBC address of Oracle",
        ":thin:",
        r"(?<=:thin:)[^\s/@]{1,128}/(?P<v>[^\s@]{1,256})(?=@)",
        "jdbc:oracle:thin:scott/{a12}@//db.example:1521/x",
    ),
    _form(
        "data source name of Go's MySQL driver",
        "@tcp( @tcp6( @unix( @udp(",
        r"(?<![\w.+-])[\w.+-]{1,64}:(?P<v>[^\s\"'`]{1,256}?)(?=@(?:tcp6?|unix|udp)\()",
        "ada:{a12}@tcp(db.example:3306)/x",
    ),
    _form(
        "address without a scheme",
        "@",
        r"(?<![\w/:@.%+-])[a-z_][\w.+-]{0,63}:(?P<v>[^\s:@/\"'`(){}\[\],;<>]{4,256})@(?=(?!sha\d)[\w.-]{1,253}(?::\d{2,5}\b|/\w))",
        "ada:{a12}@db.example:5432/x",
    ),
    _form(
        "signature in an address",
        "sig",
        r"(?<=[?&;])(?:sig|signature|x-[a-z]{2,8}-signature)=(?P<v>[^\s&\"'<>#]{6,4096})",
        "https://a.example/c?sv=1&sig={a40}",
    ),
    _form(
        "session of a signed address",
        "-credential -security-token",
        r"(?<=[?&;])x-[a-z]{2,8}-(?:credential|security-token)=(?P<v>[^\s&\"'<>#]{6,4096})",
        "https://a.example/c?X-Amz-Security-Token={a40}",
    ),
    _form(
        "key in an address",
        "key= code= sas=",
        r"(?<=[?&])(?:key|code|sas)=(?P<v>[^\s&\"'<>#]{20,4096})",
        "https://a.example/f?code={a40}",
    ),
    # Addresses that somebody may post to who knows them.
    _form(
        "webhook by its host",
        "://hooks. .webhook.office.com/",
        rf"https?://(?:hooks\.[^\s/\"'<>]{{1,255}}|[^\s/\"'<>]{{1,255}}\.webhook\.office\.com)/(?P<v>{_BOUNDED}{{12,2048}})",
        "https://hooks.example.com/services/{a9}/{a24}",
    ),
    _form(
        "webhook by its path",
        "hook",
        rf"https?://[^\s/\"'<>]{{1,255}}/(?:[\w.-]{{1,64}}/){{0,4}}?(?:webhooks?|hooks)/(?P<v>{_BOUNDED}{{16,2048}})",
        "https://chat.example/api/webhooks/1234567890/{a40}",
    ),
    _form(
        "Power Automate and Logic Apps",
        "/triggers/",
        rf"/triggers/(?P<v>{_BOUNDED}{{20,2048}})",
        "https://prod-1.logic.example/workflows/a/triggers/manual/paths/invoke?x={a20}",
    ),
    _form("Telegram's address", "/bot", r"(?<=/bot)(?P<v>\d{6,12}:[\w-]{30,64})", "/bot{d10}:{w35}/getMe"),
)

HEADERS: Final = (
    _form(
        "Authorization",
        "authorization",
        r"\b(?:proxy-)?authorization[\\\"']{0,3}\s{0,4}(?:[:,]|={1,3})\s{0,4}[\\\"']{0,3}(?P<v>[^\s\"'\\=][^\n\"'\\\x1f]{0,8192})",
        "Authorization: Bearer {a9}",
    ),
    _form(
        "Authorization of a server",
        "authorization",
        r"\bauthorization[\\\"']{0,3}\s{1,8}\\{0,3}[\\\"']{0,4}(?P<v>(?:basic|bearer|token|digest|apikey|negotiate)\s{1,4}[^\s\"'\\;]{3,8192})",
        'proxy_set_header Authorization "Basic {a12}";',
    ),
    _form(
        "cookie",
        "cookie",
        r"\b(?:set-)?cookie\s{0,4}:\s{0,4}(?P<v>[^\s\"'][^\n\"'\x1f]{0,8192})",
        "Cookie: session={a16}",
    ),
    _form(
        "bearer token",
        "bearer",
        r"\bbearer\s{1,4}(?P<v>(?=[a-z._~+/=-]{0,64}\d)[\w.~+/=-]{8,8192})",
        "uses bearer {a20} for it",
    ),
    _form(
        "basic authentication",
        "basic",
        r"\bbasic\s{1,4}(?P<v>[a-z0-9+/]{8,8192}={0,2})",
        "uses Basic YWRhOnp4{b16} for it",
        pair=True,
    ),
)

STATEMENTS: Final = (
    _form(
        "SQL, identified by",
        "identified",
        rf"\bidentified\s{{1,4}}(?:with\s{{1,4}}\S{{1,64}}\s{{1,4}})?(?:by|as)\s{{1,4}}(?:password\s{{1,4}})?{_QUOTED}",
        "CREATE USER ada IDENTIFIED BY '{a12}';",
    ),
    _form(
        "SQL, password",
        "password",
        r"\bpassword\s{1,4}(?:=\s{0,4})?(?:password\()?[\"'](?P<v>[^\s\"'\n]{1,1024})[\"']",
        "CREATE ROLE ada WITH LOGIN PASSWORD '{a12}';",
    ),
    _form(
        "PowerShell, a secure string",
        "convertto-securestring",
        rf"ConvertTo-SecureString\s{{1,4}}(?:-\w{{1,16}}\s{{1,4}}){{0,3}}{_QUOTED}",
        'ConvertTo-SecureString "{a12}" -AsPlainText -Force',
    ),
    _form(
        "PowerShell, a credential",
        "credential",
        rf"credential\s{{0,4}}\(\s{{0,4}}\\{{0,3}}[\"'][^\"'\n]{{1,128}}[\"']\s{{0,4}},\s{{0,4}}{_QUOTED}",
        'New-Object NetworkCredential("ada", "{a12}")',
    ),
    _form(
        "call with a user and a password",
        "auth login",
        rf"\b(?:\w{{0,16}}auth|login)\s{{0,4}}[=(]\s{{0,4}}\(?\s{{0,4}}\\{{0,3}}[\"'][^\"'\n]{{1,128}}[\"']\s{{0,4}},\s{{0,4}}{_QUOTED}\s{{0,4}}\)",
        "requests.get(url, auth=('ada', '{a12}'))",
    ),
    _form(
        "mask of a workflow command",
        "::add-mask::",
        r"::add-mask::(?P<v>[^\s]{1,1024})",
        "echo ::add-mask::{a12}",
    ),
    _form(
        "output of a workflow command",
        "::set-output",
        r"::set-output name=\w{0,64}(?:token|secret|password|key)\w{0,64}::(?P<v>[^\s]{1,1024})",
        "echo ::set-output name=api_token::{a12}",
    ),
    _form(
        "standard input of a login",
        "-stdin",
        r"\b(?:echo|printf)\s{1,4}(?:-\w\s{1,4}|[\"']?%s(?:\\n)?[\"']?\s{1,4})?[\\\"']{0,4}(?P<v>[^\s\"'$`|;&]{1,1024})[\"']?\s{1,4}\|[^\n|;]{1,160}-stdin\b",
        "echo {a12} | docker login -u ada --password-stdin registry.example",
    ),
    _form(
        "standard input of chpasswd",
        "chpasswd",
        r"\b(?:echo|printf)\s{1,4}(?:-\w\s{1,4})?[\"']?[\w.-]{1,64}:(?P<v>[^\s\"'$`|]{1,1024})[\"']?\s{1,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd",
        "echo 'ada:{a12}' | chpasswd",
    ),
    _form(
        "standard input of sudo",
        "sudo",
        r"\b(?:echo|printf)\s{1,4}(?:-\w\s{1,4})?[\\\"']{0,4}(?P<v>[^\s\"'$`|;&]{1,1024})[\"']?\s{1,4}\|\s{0,4}sudo\s{1,4}-S\b",
        "echo {a12} | sudo -S reboot",
    ),
    _form(
        "openssl's source of a password",
        "pass:",
        r"(?<=[\s\"']pass:)(?P<v>[^\s\"']{1,1024})",
        "-passin pass:{a12}",
    ),
)

FILES: Final = (
    _form(
        ".netrc",
        "password",
        r"\b(?:login|user|account)\s{1,9}\S{1,128}\s{1,9}password\s{1,9}(?P<v>\S{1,1024})",
        "machine api.example login ada password {a12}",
    ),
    _form(
        ".netrc without a user",
        "machine default",
        r"\b(?:machine\s{1,9}\S{1,255}|default)\s{1,9}password\s{1,9}(?P<v>\S{1,1024})",
        "machine api.example password {a12}",
    ),
    _form(
        ".pgpass",
        ":5432: :5433: :6432: :*:",
        r"(?:^|(?<=[\n\"']))[\w.*-]{1,253}:(?:\d{2,5}|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:(?P<v>[^\s:\"']{3,1024})(?=\s|\Z|[\"'])",
        "db.example:5432:app:ada:{a12}",
    ),
    _form(
        "hash of crypt",
        "$",
        r"(?P<v>\$(?:[1567y]|2[abxy]|gy|apr1|md5|sha1|scrypt|bcrypt-sha256|argon2(?:id|i|d)|pbkdf2[\w-]{0,16})\$[\w./+=$,-]{12,512})",
        "ada:$6${a16}${b40}",
    ),
    _form(
        "hash of Django",
        "$",
        r"\b(?P<v>(?:pbkdf2_sha\d{1,3}|bcrypt_sha256|argon2|scrypt|md5|sha1)\$[\w./+=$,-]{16,512})",
        "pbkdf2_sha256$600000${a22}${b40}",
    ),
    _form(
        "hash of PostgreSQL",
        "scram-sha-256$",
        r"(?P<v>scram-sha-256\$\d{1,8}:[\w+/=$:]{16,512})",
        "SCRAM-SHA-256$4096:{b20}${b40}:{b40}",
    ),
    _form(
        "password of a directory or a mailbox",
        "}",
        r"(?<![^\s\"':=])\{(?:ssha\d{0,3}|sha\d{0,3}|smd5|md5|crypt|plain|clear|cleartext|cram-md5|pbkdf2[\w-]{0,16})\}(?P<v>[^\s\"':{}]{4,512})",
        "userPassword:: {SSHA}{b28}",
    ),
    _form(
        "IPsec",
        "psk xauth eap",
        r":\s{0,4}(?:PSK|XAUTH|EAP)\s{1,4}[\\\"']{0,4}(?P<v>[^\s\"']{1,1024})",
        '192.0.2.1 : PSK "{a12}"',
    ),
    _form(
        "SNMP community",
        "community com2sec",
        r"\b(?:r[ow]community6?|com2sec6?\s{1,8}(?:-\w\w\s{1,8}\S{1,64}\s{1,8})?\S{1,64}\s{1,8}\S{1,64})\s{1,8}(?P<v>[^\s\"']{1,256})",
        "rocommunity {a12} 192.0.2.0/24",
    ),
    _form(
        "SNMP user",
        "createuser",
        r"\bcreateUser\s{1,8}(?:-e\s{1,8}\S{1,64}\s{1,8})?\S{1,64}\s{1,8}(?:MD5|SHA[\d-]{0,4})\s{1,8}(?P<v>[^\n\r]{1,512})",
        'createUser ada SHA "{a12}" AES "{a12}"',
    ),
    _form(
        "access list of Redis",
        ">",
        r"\b(?:user|setuser)\s{1,4}\S{1,64}(?:\s{1,4}[^\s>]{1,64}){0,8}?\s{1,4}>(?P<v>[^\s\"']{1,1024})",
        "user ada on >{a12} ~* +@all",
    ),
    _form(
        "key of BIND",
        "secret",
        rf"\bsecret\s{{1,4}}{_QUOTED}\s{{0,4}};",
        'key "a" { algorithm hmac-sha256; secret "{b40}"; };',
    ),
    _form(
        "HAProxy and keepalived",
        "password auth_pass",
        r"\b(?:(?:in)?secure-password|password-hash|auth_pass)\s{1,4}(?P<v>[^\s\"']{1,1024})",
        "user ada insecure-password {a12}",
    ),
    _form(
        "setting of a server",
        "requirepass masterauth bindpw rootpw _passwd",
        r"\b(?:requirepass|masterauth|(?:root)?bindpw|rootpw|sasl_passwd|http_passwd|proxy_passwd)\s{1,4}[\\\"']{0,4}(?P<v>[^\s\\\"';-][^\s\\\"';]{0,1023})",
        "requirepass {a12}",
    ),
    _form(
        "value of a password in XML",
        "password>",
        r"password>\s{0,64}<value>(?P<v>[^<]{1,1024})",
        "<AdministratorPassword><Value>{a12}</Value></AdministratorPassword>",
    ),
    _form(
        "unattended installation",
        "rootpw --password=",
        r"\brootpw\s{1,4}(?:--\w{1,16}\s{1,4}){1,3}(?P<v>[^\s\"'-][^\s\"']{0,1023})",
        "rootpw --plaintext {a12}",
    ),
    _form(
        "Debian's answers",
        "password",
        r"\b(?:passwd|mysql-server|[\w-]{1,64})/[\w-]{0,64}password[\w-]{0,64}\s{1,8}(?:password|string)\s{1,8}(?P<v>[^\s]{1,1024})",
        "d-i passwd/root-password password {a12}",
    ),
)

KEYS: Final = (
    _form(
        "private key in PEM",
        "private key",
        r"(?P<v>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z))",
        "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n-----END RSA PRIVATE KEY-----\n",
    ),
    _form(
        "private key of SSH2",
        "private key",
        r"(?P<v>---- BEGIN SSH2 [A-Z0-9 ]{0,20}PRIVATE KEY ----(?s:.*?)(?:---- END SSH2 |\Z))",
        '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "a"\n{b64}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n',
    ),
    _form(
        "key of OpenVPN",
        "static key",
        r"-----BEGIN OpenVPN Static key V\d-----\s{0,8}(?P<v>(?s:.*?))(?:\s{0,8}-----END OpenVPN|\Z)",
        "-----BEGIN OpenVPN Static key V1-----\n{h32}\n{h32}\n-----END OpenVPN Static key V1-----\n",
    ),
    _form(
        "key of PuTTY",
        "private-lines:",
        r"\bPrivate-Lines:\s{0,8}\d{1,5}(?:\s|\\[nr]){1,16}(?P<v>(?s:.*?))(?=(?:\s|\\[nr]){0,16}Private-(?:MAC|Hash)\b|\Z)",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 2\n{b64}\n{b40}\nPrivate-MAC: 0a\n",
    ),
    _form(
        "key in JSON (JWK), of RSA or of a curve",
        "kty",
        r"(?<![\w.])[\\\"']{0,4}(?:d|p|q|dp|dq|qi|oth)[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?P<v>[\w-]{16,8192})",
        '{"kty": "EC", "crv": "P-256", "x": "a", "d": "{w43}"}',
    ),
    _form(
        "key in JSON (JWK), symmetric",
        "kty",
        r"(?<![\w.])[\\\"']{0,4}k[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?P<v>[\w-]{8,8192})",
        '{"kty":"oct","k":"{w43}"}',
    ),
    _form(
        "key in XML",
        "rsakeyvalue",
        r"<(?P<tag>D|P|Q|DP|DQ|InverseQ)>(?P<v>[\w+/=\s]{8,8192})</",
        "<RSAKeyValue><Modulus>a</Modulus><D>{b64}</D></RSAKeyValue>",
    ),
    _form(
        "key of OpenSSH without its frame",
        "b3blbnnzac1rzxktdje",
        r"(?P<v>\bb3BlbnNzaC1rZXktdjE[\w+/=\s]{16,16384})",
        "b3BlbnNzaC1rZXktdjE{b64}",
    ),
    _form(
        "key of minisign",
        "secret key",
        r"\bsecret key[^\n]{0,64}\n(?P<v>[\w+/]{40,512}={0,2})",
        "untrusted comment: minisign encrypted secret key\n{b100}",
    ),
    _form(
        "secret exponent of a key as text",
        "privateexponent",
        r"\bprivateExponent:\s{0,8}(?P<v>[0-9a-f:\s]{16,8192})",
        "privateExponent:\n    {h=2}:{h=2}:{h=2}:{h=2}:{h=2}:{h=2}:{h=2}:{h=2}\n",
    ),
)

OPTIONS: Final = (
    _form(
        "user with a password for any program",
        "-u user",
        (
            r"(?<![\w-])(?:-u[\s=]{0,4}|--(?:proxy-)?user[\s=]{1,4}|(?:-u|--(?:proxy-)?user)\\{0,3}[\"'],\s{0,4}\\{0,3}(?=[\"']))"
            r"[\"']?[^\s:\"']{0,128}:(?!//)(?P<v>(?!\d{1,6}\b)[^\s\"']{1,1024})"
        ),
        "serve -u ada:{a12}",
    ),
    _form(
        "password of any program",
        "-p",
        r"(?:^|(?<=\s))-p(?P<v>(?=[a-z!-/]{0,64}\d)(?=[\d!-/]{0,64}[a-z])[^\s=:/\"']{6,256})(?!\S)",
        "serve -pa1{a12}",
    ),
)

FORMS: Final = (*ADDRESSES, *HEADERS, *STATEMENTS, *FILES, *OPTIONS, *KEYS)


_BY_SIGN: Final = tuple(
    (sign, tuple(form for form in FORMS if sign in form.signs))
    for sign in dict.fromkeys(sign for form in FORMS for sign in form.signs)
)


@cache
def _any_sign() -> re.Pattern[str]:
    return re.compile(any_of(sign for sign, _ in _BY_SIGN))


def find_forms(text: str) -> Iterator[Span]:
    """Find secrets of the forms in the table."""
    lower = text.lower()
    if not _any_sign().search(lower):
        return
    forms = {form.kind: form for sign, forms in _BY_SIGN if sign in lower for form in forms}
    for form in forms.values():
        for match in form.pattern.finditer(text):
            named = match.groupdict()
            # What looks like a reference may be the user of an address, with a password beside it that is none.
            if is_harmless_value(match["v"]) and is_harmless_value(named.get("password", "")):
                continue
            if not form.pair or is_basic_pair(match["v"]):
                yield match.span("v")


def is_private_key(data: bytes) -> bool:
    """True for the beginning of a private key in DER: a sequence whose first item is a version (PKCS 1, 8 and 12, SEC 1)."""
    if len(data) < 16 or data[0] != 0x30:
        return False
    length = 2 + (data[1] & 0x7F if data[1] & 0x80 else 0)
    return data[length : length + 2] == b"\x02\x01" and data[length + 2] in (0, 1, 3)


def decoded(word: str) -> bytes:
    """What *word* is in base64; empty if it is none."""
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    # Text has capitals and small letters in base64, as names and digests do not.
    if len(plain) % 4 == 1 or plain.islower() or plain.isupper():
        return b""
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return b""
