"""Finds secrets in a text by how they are written: assignments, options, headers, addresses, keys, tokens.

All patterns are searched in linear time, for texts are foreign: what repeats is bounded, and a search starts at the
beginning of a word. Items of a list of arguments are joined by `ITEM`, which is white space to a pattern.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Final

from dra_infra.kubernetes.api.manifests import SECRET
from dra_infra.output.secret_names import can_hold_secret, is_harmless_value, is_secret_value

Span = tuple[int, int]
"""Beginning and end of a secret in a text."""

ITEM: Final = "\x1f"
"""Stands between the items of a list."""

_KNOWN: Final = (
    r"github_pat_|nvapi-|dckr_[po]at_|pypi-ag|hv[sbr]\.|gl[a-z]{1,6}-(?=[\w.-]{0,30}\d)|npm_(?=\w{30})|hf_(?=\w{30})"
    r"|aiza(?=[\w-]{35})|ya29\.|xapp-|do[pr]_v1_|shp[a-z]{2}_|age-secret-key-1|pul-(?=[0-9a-f]{40})|glsa_"
    r"|dapi(?=[0-9a-f]{32})|tskey-|lin_api_|atatt3|sk-(?=[a-z_-]{0,40}\d)(?=[\w-]{32})"
)
"""Beginnings of tokens that the detector does not know."""

_MAYBE: Final = re.compile(
    r"pass|pw|secret|token|cred|key|auth|[?&;]sig|x-[a-z]{2,8}-sig|hook|bearer|cookie|conn|://|:thin:"
    r"|(?:^|[\s\"'])(?:-[pauw]|--(?:proxy-)?user)"
    rf"|sas=|code=|/bot|(?<![a-z0-9])(?:{_KNOWN})",
    re.IGNORECASE,
)
"""Some of it is in every text in which a secret is written as such."""

_PEM: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)

_VALUES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Addresses: a user with a password, a token in its place, and Oracle's. A user may be called `vault` or `env`.
        r"(?<=://)(?P<v>[^\s/:@]{0,256}:(?P<password>[^\s/]{1,1024}))(?=@)",
        r"(?<=://)(?P<v>(?=[a-z_-]{0,64}\d)[\w-]{24,256})(?=@)",
        r"(?<=:thin:)[^\s/@]{1,128}/(?P<v>[^\s@]{1,256})(?=@)",
        # Signatures in addresses, and keys and codes of some length.
        r"(?<=[?&;])(?:sig|signature|x-[a-z]{2,8}-(?:signature|credential|security-token))=(?P<v>[^\s&\"'<>#]{6,4096})",
        r"(?<=[?&])(?:key|code|sas)=(?P<v>[^\s&\"'<>#]{20,4096})",
        # Addresses that somebody may post to who knows them.
        r"https?://(?:hooks\.[^\s/\"'<>]{1,255}|[^\s/\"'<>]{1,255}\.webhook\.office\.com)/(?P<v>[^\s\"'<>]{12,2048})",
        r"https?://[^\s/\"'<>]{1,255}/(?:[\w.-]{1,64}/){0,4}?(?:webhooks?|hooks)/(?P<v>[^\s\"'<>]{16,2048})",
        r"(?<=/bot)(?P<v>\d{6,12}:[\w-]{30,64})",
        # Headers.
        r"\b(?:proxy-)?authorization[\\\"']{0,3}\s{0,4}[:=,]\s{0,4}[\\\"']{0,3}(?P<v>[^\s\"'\\][^\n\"'\\\x1f]{0,8192})",
        r"\b(?:set-)?cookie\s{0,4}:\s{0,4}(?P<v>[^\s\"'][^\n\"'\x1f]{0,8192})",
        r"\bbearer\s{1,4}(?P<v>(?=[a-z._~+/=-]{0,64}\d)[\w.~+/=-]{8,8192})",
        # .netrc, and openssl.
        r"\b(?:login|user|account)\s{1,9}\S{1,128}\s{1,9}password\s{1,9}(?P<v>\S{1,1024})",
        r"(?<=\spass:)(?P<v>\S{1,1024})",
        # Options of one letter: a user with a password; a password by itself where the program is known.
        (
            r"(?<![\w-])(?:-u[\s=]{0,4}|--(?:proxy-)?user[\s=]{1,4}|(?:-u|--(?:proxy-)?user)\\{0,3}[\"'],\s{0,4}\\{0,3}(?=[\"']))"
            r"[\"']?[^\s:\"']{0,128}:(?!//)(?P<v>(?!\d{1,6}\b)[^\s\"']{1,1024})"
        ),
        r"\b(?:mysql\w{0,16}|mariadb[\w-]{0,16})(?=\s)[^\n;|&]{0,256}?\s-p[\"']?(?P<v>[^\s\"'$][^\s\"']{0,1023})",
        (
            r"\b(?:sshpass|mongo\w{0,16}|(?:docker|podman|nerdctl|helm|oras|skopeo|crane|az)(?=\s)[^\n;|&]{0,64}?\slogin)(?=\s)"
            r"[^\n;|&]{0,160}?\s-p[\s=]{0,4}[\"']?(?P<v>[^\s\"'$][^\s\"']{0,1023})"
        ),
        r"\b(?:redis-cli|valkey-cli|ldap\w{3,8})(?=\s)[^\n;|&]{0,256}?\s-[aw][\s=]{1,4}[\"']?(?P<v>[^\s\"'$-][^\s\"']{0,1023})",
        r"(?:^|(?<=\s))-p(?P<v>(?=[a-z!-/]{0,64}\d)(?=[\d!-/]{0,64}[a-z])[^\s=:/\"']{6,256})(?!\S)",
        rf"(?<![a-z0-9])(?P<v>(?:{_KNOWN})[\w.+/=-]{{16,4096}})",
    )
)

_ASSIGNED: Final = re.compile(
    r"(?P<name>(?<![\w.])[A-Za-z_][\w.\-/]{0,100}|\"[^\"\n]{1,100}\"|'[^'\n]{1,100}')\\{0,3}[\"']?"
    r"(?P<sep>[ \t]{0,64}(?::=|=>|==?|(?<!:):(?!:))[ \t]{0,64})"
)
_OPTION: Final = re.compile(
    r"(?<![\w-])--?(?P<name>[A-Za-z][\w.-]{0,64})"
    # The item behind an option may begin with a dash, and is another option where it plainly is one.
    r"(?P<sep>\x1f(?!-(?:-|\w?(?:\x1f|\Z)))|(?:[ \t]{1,64}(?:\\\r?\n[ \t]{0,64})?|\\{0,3}[\"'],\s{0,8}(?=\\{0,3}[\"']))(?!-))"
)
_PAIR: Final = re.compile(
    r"\b(?:name|key)\\{0,3}[\"']?\s{0,4}[:=]\s{0,4}\\{0,3}[\"']?(?P<name>[\w.\-]{1,100})\\{0,3}[\"']?,?\s{1,64}"
    r"\\{0,3}[\"']?value\\{0,3}[\"']?(?P<sep>\s{0,4}[:=]\s{0,4})"
)
_TAG: Final = re.compile(
    r"<(?P<name>[A-Za-z][\w.:-]{0,64})(?:\s[^<>]{0,256})?>(?:\s{0,64}<!\[CDATA\[)?(?P<v>[^<]{1,4096}?)(?:\]\]>)?</(?P=name)>"
)
_PROPERTY: Final = re.compile(r"<name>(?P<name>[^<]{1,128})</name>\s{0,64}<value>(?P<v>[^<]{1,4096})</value>")

_LONG: Final = 1024
"""Characters of a value that are looked at before it is known to be a secret."""
_QUOTED: Final = re.compile(r"(?P<q>\\{0,3}(?:\"\"\"|'''|[\"'`]))")
_NEXT_PAIR: Final = re.compile(r"[;,](?=\s|\Z|[\w .\-]{1,40}[=:])")
_BARE: Final = re.compile(rf"(?:[^\s\"'`<>;,]++|(?!{_NEXT_PAIR.pattern})[;,]|(?<=\w)[\"'`<>](?=\w))++")
"""A word without quotes around it, to what begins the next assignment, or ends what the word stands in."""
_IN_QUERY: Final = re.compile(rf"(?:[^\s\"'`&<>;,]++|(?!{_NEXT_PAIR.pattern})[;,])++")
_BLANKS: Final = re.compile(r"\s*")
_END: Final = re.compile(r"[\r\n\x1f]")
"""The end of a line, or of an item of a list."""
_BLOCK: Final = re.compile(
    r"(?:[&!]\S{0,64}[ \t]{1,8}){0,2}[|>][0-9+-]{0,2}[ \t]{0,64}(?:#[^\r\n]{0,200})?(?=[\r\n])"
)
"""The beginning of a value of YAML that is in the lines below; before it may stand an anchor and a tag."""
_ANCHOR: Final = re.compile(r"[&!]\S{1,64}[ \t]{0,8}(?=[\r\n])")
_LINE_BEFORE: Final = re.compile(r"[ \t]*(?:- +|export +|set +|\[\w+\] *)*")
_IN_SHELL: Final = re.compile(r"\s(?:&&|\|\||[|;])\s")
_ENTRY: Final = re.compile(r"[^\r\n]*?:(?:\s|\Z)")
_CALL: Final = re.compile(r"[A-Za-z_][\w.]{0,100}[(\[]")
_MAPPING: Final = re.compile(r"\{(?!\w{1,32}\}[\w+/$])")
_WORD: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")


def find_written(text: str) -> Iterator[Span]:
    """Secrets in *text* that are written as such."""
    if _MAYBE.search(text):
        yield from _plain(text)
    for match in _WORD.finditer(text):
        decoded = _decoded(match[0])
        if _MAYBE.search(decoded) and next(_plain(decoded), None):
            yield match.span()


def _plain(text: str) -> Iterator[Span]:
    if "-----BEGIN " in text:
        yield from (match.span() for match in _PEM.finditer(text))
    for pattern in _VALUES:
        for match in pattern.finditer(text):
            # What a reference looks like may be the user of an address, and a password beside it none.
            if not all(map(is_harmless_value, match.groupdict().values())):
                yield match.span("v")
    yield from _below_names(text, _ASSIGNED, _assigned)
    if "value" in text:
        yield from _below_names(text, _PAIR, _assigned)
    if "-" in text:
        yield from _below_names(text, _OPTION, _argument)
    if "</" in text:
        yield from _in_tags(text)


def _in_tags(text: str) -> Iterator[Span]:
    for pattern in (_TAG, _PROPERTY):
        for match in pattern.finditer(text):
            if is_secret_value(match["name"], match["v"]):
                yield match.span("v")


def _below_names(
    text: str, pattern: re.Pattern[str], find: Callable[[str, re.Match[str]], Iterator[Span]]
) -> Iterator[Span]:
    done = 0
    for match in pattern.finditer(text):
        name = match["name"].strip("\"'")
        # What stands in a secret is not looked at again, or a row of names would be searched from each of them.
        if match.start() >= done and can_hold_secret(name):
            for start, end in find(text, match):
                if _is_secret(name, text, start, end):
                    done = max(done, end)
                    yield start, end


def _is_secret(name: str, text: str, start: int, end: int) -> bool:
    """True for a secret by its *name* and by its beginning, so that long values take no time."""
    start = _BLANKS.match(text, start, end).end()  # type: ignore[union-attr]  # it always matches
    return is_secret_value(name, text[start : min(end, start + _LONG)])


def _assigned(text: str, match: re.Match[str]) -> Iterator[Span]:
    start = match.end()
    begin = _line_begin(text, match.start())
    if ":" in match["sep"] and (anchor := _ANCHOR.match(text, start)):
        yield anchor.span()
        start = anchor.end()
    if start == len(text) or text[start] in "\r\n":
        if ":" in match["sep"]:
            yield from _below(text, match.start(), start, scalar=begin is not None)
        return
    quoted = _quoted(text, start)
    if quoted is not None:
        yield quoted
    elif ":" in match["sep"] and (block := _BLOCK.match(text, start)):
        yield from _indented(text, _indent(text, match.start()), block.end())
    elif _MAPPING.match(text, start):
        return
    elif text[start] == "[" and not text.startswith(SECRET, start):
        end = text.find("]", start, start + 8192)
        yield start + 1, end if end > start else _line_end(text, start, start + _LONG)
    else:
        line = None if begin is None else _to_line_end(text, match, begin)
        yield line or _word(text, match)


def _line_begin(text: str, start: int) -> int | None:
    """Where the line begins whose first word is at *start*; None where it is not the first."""
    # Of a longer line nothing is known but that it is long.
    edge = max(0, start - 200)
    begin = max(text.rfind(sign, edge, start) + 1 for sign in ("\n", "\r", ITEM))
    if begin == 0 and edge > 0:
        return None
    if begin and text[begin - 1] == ITEM and text[begin:start] in {"-", "--"}:
        return begin
    return begin if _LINE_BEFORE.fullmatch(text, begin, start) else None


def _to_line_end(text: str, match: re.Match[str], begin: int) -> Span | None:
    """A value that begins behind the first word of its line, to the end of that; None where the line is code or JSON."""
    start, separator = match.end(), match["sep"]
    rest = text[start : _line_end(text, start)]
    if '"' in rest and (match["name"].startswith('"') or _CALL.match(rest)):
        return None
    comment = rest.find(" #")
    if comment > 0 and (":" in separator or is_harmless_value(rest[:comment])):
        rest = rest[:comment]
    if not separator.endswith("="):
        return start, start + len(rest.rstrip())
    if rest.startswith("$") and is_harmless_value(first := rest.split(maxsplit=1)[0]):
        # A variable that a shell fills in, and what it is set for.
        return start, start + len(first)
    ends = [_IN_SHELL.search(rest)]
    if begin and text[begin - 1] == ITEM:
        ends.append(_NEXT_PAIR.search(rest))
    end = min((found.start() for found in ends if found), default=len(rest))
    return start, start + len(rest[:end].rstrip())


def _word(text: str, match: re.Match[str]) -> Span:
    """A value without quotes in the middle of a line, to what begins the next."""
    start, separator = match.end(), match["sep"]
    pattern = _IN_QUERY if text[max(match.start() - 1, 0)] in "?&" else _BARE
    word = pattern.match(text, start, start + _LONG)
    if word is None:
        return start, start
    if word.end() == start + _LONG and is_secret_value(match["name"].strip("\"'"), word[0]):
        word = pattern.match(text, start) or word
    following = text[word.end() : word.end() + 2]
    if separator[-1:].isspace() and word[0].isalpha() and word[0][1:].islower() and following[:1].isspace():
        # A sentence: "invalid token: unexpected end".
        return start, start
    return start, start + len(word[0].rstrip(")}],;"))


def _argument(text: str, match: re.Match[str]) -> Iterator[Span]:
    start = match.end()
    if match["sep"] == ITEM:
        end = text.find(ITEM, start)
        yield start, end if end >= 0 else len(text)
        return
    quoted = _quoted(text, start)
    if quoted is not None:
        yield quoted
    elif word := _BARE.match(text, start):
        if word[0] in {"and", "or", "is", "for", "to", "in", "with"}:
            # A sentence about the option.
            return
        yield word.span()


def _quoted(text: str, start: int) -> Span | None:
    """The text in quotes from *start* on; None where no quote begins."""
    opened = _QUOTED.match(text, start)
    if opened is None:
        return None
    quote, position = opened["q"], opened.end()
    while True:
        end = text.find(quote, position)
        if end < 0:
            return opened.end(), _line_end(text, opened.end())
        before = end
        while before > position and text[before - 1] == "\\":
            before -= 1
        if quote == "'" and end > opened.end() and text.startswith("''", end):
            # As YAML and SQL write one in a text between two.
            position = end + 2
        elif quote.startswith("\\") or (end - before) % 2 == 0:
            return opened.end(), end
        else:
            position = end + 1


def _indented(text: str, indent: int, start: int) -> Iterator[Span]:
    """Lines below the one that ends at *start* that are further in than *indent*."""
    for begin, end in _lines_below(text, start):
        inner = _without_blanks(text, begin, end)
        if inner < end and inner - begin <= indent:
            return
        if inner < end:
            yield inner, end


def _below(text: str, key: int, start: int, *, scalar: bool) -> Iterator[Span]:
    """The YAML below a *key* whose line ends at *start*: items of a list, or with *scalar* a text."""
    indent, in_list = _indent(text, key), False
    for begin, end in _lines_below(text, start):
        inner = _without_blanks(text, begin, end)
        if inner == end or _ENTRY.match(text, inner, end):
            return
        if text.startswith("- ", inner) and inner - begin >= indent:
            in_list = True
            yield inner + 2, end
        elif scalar and not in_list and inner - begin > indent and text[inner] not in "-#":
            yield inner, end
        else:
            return


def _lines_below(text: str, start: int) -> Iterator[Span]:
    """Beginning and end of each line below the one that ends at *start*."""
    while start < len(text) and text[start] in "\r\n":
        begin = start + (2 if text.startswith("\r\n", start) else 1)
        start = _line_end(text, begin)
        if begin < len(text):
            yield begin, start


def _without_blanks(text: str, start: int, end: int) -> int:
    while start < end and text[start] in " \t":
        start += 1
    return start


def _indent(text: str, position: int) -> int:
    edge = max(0, position - 2**13)
    begin = max(edge - 1, text.rfind("\n", edge, position), text.rfind("\r", edge, position)) + 1
    return _without_blanks(text, begin, position) - begin


def _line_end(text: str, start: int, limit: int | None = None) -> int:
    """Where the line ends, or at *limit*."""
    limit = len(text) if limit is None else min(limit, len(text))
    end = _END.search(text, start, limit)
    return end.start() if end else limit


def _decoded(word: str) -> str:
    """The text that *word* is in base64; empty when it is none."""
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    # Text has capitals and small letters in base64, as names and digests do not.
    if len(plain) % 4 == 1 or plain.islower() or plain.isupper():
        return ""
    try:
        text = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    except ValueError:
        return ""
    return text if text.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in text) else ""
