"""URLs as Go's net/url parses, escapes and prints them, with its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from dra_infra.kubernetes.api.go_text import quoted
from dra_infra.kubernetes.cel.interpreter.addresses import read_address
from dra_infra.kubernetes.cel.interpreter.values import UndecidedError, register

Mode: TypeAlias = Literal["path", "host", "zone", "user", "query", "fragment"]

_ALWAYS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_HOST: Final = "!$&'()*+,;=:[]<>\""
_KEPT: Final[dict[Mode, frozenset[int]]] = {
    "path": frozenset(f"{_ALWAYS}$&+,/:;=@".encode()),
    "host": frozenset(f"{_ALWAYS}{_HOST}".encode()),
    "zone": frozenset(f"{_ALWAYS}{_HOST}".encode()),
    "user": frozenset(f"{_ALWAYS}$&+,;=".encode()),
    "query": frozenset(_ALWAYS.encode()),
    "fragment": frozenset(f"{_ALWAYS}$&+,/:;=?@!()*".encode()),
}
"""Characters that are not escaped, by the part of a URL."""
_ENCODED: Final = frozenset(b"!$&'()*+,;=:@[]%")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})", re.ASCII)


def unescape(text: str, mode: Mode) -> str:
    """The text without escapes; bytes that are no UTF-8 become lone surrogates.

    Raises:
        ValueError: With Go's text.
    """
    place = 0
    while place < len(text):
        character = text[place]
        if character == "%":
            match = _ESCAPE.match(text, place)
            if match is None or not _may_escape(match[1], mode):
                raise ValueError(f"invalid URL escape {quoted(text[place : place + 3])}")
            place += 3
            continue
        if mode in ("host", "zone") and ord(character) < 0x80 and ord(character) not in _KEPT[mode]:
            raise ValueError(f"invalid character {quoted(character)} in host name")
        place += 1
    if mode == "query":
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    octets = _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)), text.encode("utf-8", "surrogateescape").decode("latin-1")
    )
    return octets.encode("latin-1").decode("utf-8", "surrogateescape")


def _may_escape(digits: str, mode: Mode) -> bool:
    code = int(digits, 16)
    if digits == "25":
        return True
    if mode == "host":
        return code >= 0x80
    return mode != "zone" or code == 0x20 or code in _KEPT["host"]


def escape(text: str, mode: Mode) -> str:
    """The text with escapes where the part of the URL needs them."""
    return "".join(
        chr(octet) if octet in _KEPT[mode] else f"%{octet:02X}"
        for octet in text.encode("utf-8", "surrogateescape")
    )


def is_encoded(text: str, mode: Mode) -> bool:
    """The text needs no escapes but those that it has."""
    return all(octet in _ENCODED or octet in _KEPT[mode] for octet in text.encode("utf-8", "surrogateescape"))


_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class URL:
    """A URL in parts; a part that is None was not written."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    password: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    force_query: bool = False
    omit_host: bool = False
    fragment: str = ""
    raw_fragment: str = ""

    def escaped_path(self) -> str:
        """The path as it stands in the URL (EscapedPath)."""
        if (
            self.raw_path
            and is_encoded(self.raw_path, "path")
            and unescape(self.raw_path, "path") == self.path
        ):
            return self.raw_path
        return "*" if self.path == "*" else escape(self.path, "path")

    def split_host(self) -> tuple[str, str]:
        """Name and port of the host."""
        name, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(f":{port}"):
            name = self.host
            port = ""
        if name.startswith("[") and name.endswith("]"):
            name = name[1:-1]
        return name, port

    def text(self) -> str:
        """The URL as text (String)."""
        parts = [f"{self.scheme}:" if self.scheme else "", self.opaque or self._rest()]
        if self.force_query or self.query:
            parts.append(f"?{self.query}")
        if self.fragment:
            parts.append(f"#{self._escaped_fragment()}")
        return "".join(parts)

    def _rest(self) -> str:
        path = self.escaped_path()
        front = ""
        has_user = self.user is not None
        if (self.scheme or self.host or has_user) and not (self.omit_host and not self.host and not has_user):
            front = "//" if self.host or self.path or has_user else ""
            front += self._authority()
        if path and path[0] != "/" and self.host:
            front += "/"
        if not self.scheme and not front and ":" in path.partition("/")[0]:
            front = "./"
        return front + path

    def _authority(self) -> str:
        user = ""
        if self.user is not None:
            password = "" if self.password is None else f":{escape(self.password, 'user')}"
            user = f"{escape(self.user, 'user')}{password}@"
        return user + (escape(self.host, "host") if self.host else "")

    def _escaped_fragment(self) -> str:
        raw = self.raw_fragment
        if raw and is_encoded(raw, "fragment") and unescape(raw, "fragment") == self.fragment:
            return raw
        return escape(self.fragment, "fragment")


register(URL, "kubernetes.URL", "cel.URL")


def parse_request_uri(text: str, *, strict: bool = True) -> URL:
    """An absolute URL or path, without regard to a fragment (url.ParseRequestURI).

    Args:
        text: The URL.
        strict: Whether a host of http has one colon at most, which servers before 1.36 do not mind.

    Raises:
        ValueError: With Go's text.
    """
    try:
        return _parse(text, via_request=True, strict=strict)
    except ValueError as error:
        raise ValueError(f"parse {quoted(text)}: {error}") from error


def parse_url(text: str, *, strict: bool = True) -> URL:
    """Any URL (url.Parse); *strict* as for `parse_request_uri`.

    Raises:
        ValueError: With Go's text.
    """
    before, _, fragment = text.partition("#")
    told = before
    try:
        url = _parse(before, via_request=False, strict=strict)
        if not fragment:
            return url
        told = text
        plain = unescape(fragment, "fragment")
    except ValueError as error:
        raise ValueError(f"parse {quoted(told)}: {error}") from error
    raw = "" if escape(plain, "fragment") == fragment else fragment
    return replace(url, fragment=plain, raw_fragment=raw)


def parse_query(query: str) -> dict[str, list[str]]:
    """The parameters; those that are malformed are left out."""
    found: dict[str, list[str]] = {}
    if query.count("&") + 1 > 10000:
        return found
    for part in query.split("&"):
        if ";" in part or not part:
            continue
        key, _, value = part.partition("=")
        try:
            name, text = unescape(key, "query"), unescape(value, "query")
        except ValueError:
            continue
        found.setdefault(_whole(name), []).append(_whole(text))
    return found


def _whole(text: str) -> str:
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise UndecidedError("a text that is not UTF-8")
    return text


def _parse(text: str, *, via_request: bool, strict: bool) -> URL:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and via_request:
        raise ValueError("empty url")
    if text == "*":
        return URL(path="*")
    scheme, rest = _split_scheme(text)
    forced = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme=scheme, opaque=rest, query=query, force_query=forced)
        if via_request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user: str | None = None
    password: str | None = None
    host, omit_host = "", False
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, password, host = _parse_authority(scheme if strict else "", authority)
    elif scheme and rest.startswith("/"):
        omit_host = True
    path = unescape(rest, "path")
    return URL(
        scheme=scheme,
        user=user,
        password=password,
        host=host,
        path=path,
        raw_path="" if escape(path, "path") == rest else rest,
        query=query,
        force_query=forced,
        omit_host=omit_host,
    )


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _parse_authority(scheme: str, authority: str) -> tuple[str | None, str | None, str]:
    info, sign, place = authority.rpartition("@")
    host = _parse_host(scheme, place)
    if not sign:
        return None, None, host
    if not _USER.fullmatch(info):
        raise ValueError("net/url: invalid userinfo")
    name, colon, password = info.partition(":")
    return unescape(name, "user"), unescape(password, "user") if colon else None, host


def _parse_host(scheme: str, host: str) -> str:
    opened = host.rfind("[")
    if opened > 0:
        raise ValueError("invalid IP-literal")
    if opened == 0:
        return _parse_literal(host)
    first = host.find(":")
    last = host.rfind(":")
    if first != -1:
        port = host[first if scheme in ("http", "https") else last :]
        if not _PORT.fullmatch(port):
            raise ValueError(f"invalid port {quoted(port)} after host")
    return unescape(host, "host")


def _parse_literal(host: str) -> str:
    closed = host.rfind("]")
    if closed < 0:
        raise ValueError("missing ']' in host")
    name, port = host[1:closed], host[closed + 1 :]
    if not _PORT.fullmatch(port):
        raise ValueError(f"invalid port {quoted(port)} after host")
    zone = name.find("%25")
    plain = (
        unescape(name, "host") if zone < 0 else unescape(name[:zone], "host") + unescape(name[zone:], "zone")
    )
    try:
        address, _ = read_address(plain)
    except ValueError as error:
        raise ValueError(f"invalid host: {error}") from error
    if address.family == 4:
        raise ValueError("invalid IP-literal")
    return f"[{plain}]{port}"
