"""Find secrets in a text by how they are written: below names that say so, and in the forms of three tables.

The tables are of tokens by their makers (`secret_tokens`), of arguments by program (`secret_commands`) and of forms
(`secret_forms`). Here are the places that a name may have before its value: assignments, options, calls, comparisons,
lines of a configuration, tags; which names say that a value is secret is in `secret_names`.

All patterns are searched in linear time, for texts are foreign: what repeats is bounded, and a search starts at the
beginning of a word. Items of a list of arguments are joined by `ITEM`, which is white space to a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from dra_infra.markers import SECRET
from dra_infra.output.secret_commands import find_in_commands
from dra_infra.output.secret_forms import decoded, find_forms, is_private_key
from dra_infra.output.secret_names import (
    ITEM,
    MAKERS,
    can_hold_secret,
    is_harmless_value,
    is_secret_value,
)
from dra_infra.output.secret_tokens import Span, find_known_tokens

_SHORTEST: Final = 6
"""Characters of a text that has a secret in it and something that says so."""
_ESCAPED: Final = re.compile(r"\\[nrt]")
_SIGNS: Final = (
    "pass",
    "pw",
    "secret",
    "token",
    "cred",
    "key",
    "auth",
    "psk",
    "cookie",
    "conn",
    "hook",
    "contrase",
    "senha",
    "bearer",
    "kennwort",
    "mnemonic",
    "seed",
    "community",
    "motdepasse",
    "header",
)
"""Parts of names, one of which is in every text with a name that says that a value is secret."""
_MAKERS: Final = tuple(sorted(word.lower() for word in MAKERS))
_RANDOM: Final = re.compile(r"[0-9a-z_-]{20}")
"""What is in every text with a random value of a maker."""

_NAME: Final = (
    r"(?:(?<![\w.])|(?<=[\])]\.)|(?<=\.\?))[A-Za-z_][\w.\-/]{0,100}"
    r"|\"(?:[^\"\n\r=:]|:(?!\s)){1,100}\"|'(?:[^'\n\r=:]|:(?!\s)){1,100}'"
)
"""A name, also the last one of `a['b'].name` and `a.?name`; no quoted text that has an assignment in it."""
_TYPE: Final = r"[&\w'\[\]<>]{0,16}\b(?i:str|string|bytes|char|text|final|any)\b[\[\]<>\w |?*]{0,16}"
_ASSIGNED: Final = re.compile(
    rf"(?P<name>{_NAME})\\{{0,3}}[\"']?(?P<subscript>\[\d{{0,4}}\]|[\])}}]{{1,2}})?"
    rf"(?P<sep>[ \t]{{0,64}}(?:(?<!:):(?!:)[ \t]{{0,8}}{_TYPE}[ \t]{{0,8}}=[ \t]{{0,8}}(?=[\"'`])|:=|=>|<-(?=[ \t]{{0,8}}[\"'])"
    r"|(?:\|\||\?\?|//|[?+.!])?={1,3}|(?<!:):(?!:)|(?<=[ \t])in(?=[ \t]{1,8}\[))[ \t]{0,64})"
)
_COMPARED: Final = re.compile(
    r"(?P<v>(?<![\w\\])\\{0,3}(?:\"[^\"\n]{1,512}\"|'[^'\n]{1,512}'))[ \t]{0,8}[=!]={1,2}[ \t]{0,8}"
    r"(?P<name>[A-Za-z_][\w.\[\]'\"/?-]{0,200})"
)
"""A text that is compared with what has a name."""
_CALL_WITH_NAME: Final = re.compile(
    r"[\w\])]\(\s{0,8}\\{0,3}[\"'](?P<name>[\w.\- ]{1,100})\\{0,3}[\"']\s{0,8}(?P<sep>,\s{0,8})(?=\\{0,3}[\"'`])"
)
_CALLED: Final = re.compile(
    r"(?<!\w)(?P<name>(?:(?:[Ss]et|[Ww]ith|[Uu]se|[Aa]dd|[Aa]uth|[Aa]ccess|[Cc]lient|[Dd]b|[Uu]ser|[Aa]dmin|[Rr]oot|[Bb]earer)_?){0,4}"
    r"(?:[Pp]assword|[Pp]asswd|[Pp]assphrase|secret|(?<=\w)Secret|[Tt]oken|[Aa][Pp][Ii]_?[Kk]ey|[Ss]ecret_?[Kk]ey|[Aa]ccess_?[Kk]ey)"
    r"|[A-Za-z_]\w{0,64}(?=\.(?:startsWith|endsWith|contains|matches|equals|includes|indexOf|compareTo|orValue|eq|ne)\w{0,16}\())"
    r"(?:\.(?:startsWith|endsWith|contains|matches|equals|includes|indexOf|compareTo|orValue|eq|ne)\w{0,16})?(?P<sep>\(\s{0,8})(?=\\{0,3}[\"'`])"
)
"""A call whose name, or the name of what it is called on, says what its argument is."""
_PLACED: Final = re.compile(
    r"(?:^|(?<=[\n;{\x1f]))[ \t]{0,64}(?P<set>(?:set|setx|setenv|SetEnv|ENV|ARG|export|env|option|param|header)[ \t]{1,8}"
    r"(?:--?\w{1,8}[ \t]{1,8}){0,2})?(?P<name>[A-Za-z_][\w.\-]{1,64})[ \t]{1,64}"
    r"(?P<v>\"[^\"\n]{1,1024}\"|'[^'\n]{1,1024}'|[^\s\"'{}();=:\[<>|&#-][^\s\"';=]{0,1023})[ \t]{0,16};?[ \t]{0,16}"
    r"(?=[\n\r\x1f}]|\Z|#|//)"
)
"""A line of a name and a value."""
_SET: Final = re.compile(
    r"\b(?:config(?:ure)?|user-secrets|secrets?|setx|setenv|set)(?::\w{1,8}|[ \t\x1f]{1,4}(?:set|add|put|local|global))?"
    r"[ \t\x1f]{1,4}(?:--?[\w-]{1,16}[ \t\x1f]{1,4}){0,3}(?P<name>[\w./:@-]{2,100})(?P<sep>[ \t\x1f]{1,4})(?=[^\s=:?+-])"
)
"""A setting that a program is told: its name, and its value in the next argument."""
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
_TAG_WITH_NAME: Final = re.compile(
    r"<(?P<tag>[A-Za-z]\w{0,32})\s[^<>]{0,256}?\b(?:name|key|id)=[\"'](?P<name>[^\"'<>]{1,128})[\"'][^<>]{0,256}>(?P<v>[^<]{1,4096})</(?P=tag)>"
)
_PROPERTY_LIST: Final = re.compile(
    r"<key>(?P<name>[^<]{1,128})</key>\s{0,64}<string>(?P<v>[^<]{1,4096})</string>"
)
_PROPERTY: Final = re.compile(r"<name>(?P<name>[^<]{1,128})</name>\s{0,64}<value>(?P<v>[^<]{1,4096})</value>")

_LONG: Final = 1024
"""Characters of a value that are looked at before it is known to be a secret."""
_QUOTED: Final = re.compile(r"(?:[bfrt]{1,2}(?=[\"']))?(?P<q>\\{0,3}(?:\"\"\"|'''|[\"'`]))")
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
_PLAIN_NAMES: Final = frozenset(
    {"PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "COOKIE", "AUTHORIZATION", "CREDENTIALS"}
)
"""Names that are also the first word of a sentence."""
_WORDS_OF_OBJECTS: Final = frozenset({"SECRET", "SECRETS", "TOKEN", "TOKENS"})
"""Names that are also kinds of objects, with the object's name behind them."""
_ORDINARY: Final = re.compile(r"[A-Za-z]?[a-z]*(?:[.,:!-]*[a-z]*)*+")
_WORD: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")


def find_written(text: str) -> Iterator[Span]:
    """Find secrets in *text* that are written as such."""
    if len(text) >= _SHORTEST:
        yield from _plain(text)
        if "\\" in text and _ESCAPED.search(text):
            # Lines of a text in another one, as in JSON or in a traceback. A blank takes as many characters.
            yield from _plain(_ESCAPED.sub(" \n", text))
    for match in _WORD.finditer(text):
        data = decoded(match[0])
        if is_private_key(data) or (data and next(_plain(_text(data)), None)):
            yield match.span()


def _plain(text: str) -> Iterator[Span]:
    yield from find_known_tokens(text)
    yield from find_forms(text)
    yield from find_in_commands(text)
    if _has_name(text.lower()):
        yield from _named(text)


def _has_name(text: str) -> bool:
    return _has_one(_SIGNS, text) or (_RANDOM.search(text) is not None and _has_one(_MAKERS, text))


def _has_one(signs: tuple[str, ...], text: str) -> bool:
    # A loop looks for so few signs faster than a pattern, and than a generator.
    for sign in signs:  # noqa: SIM110
        if sign in text:
            return True
    return False


def _named(text: str) -> Iterator[Span]:
    """Find secrets below names."""
    yield from _below_names(text, _ASSIGNED, _assigned)
    if "value" in text:
        yield from _below_names(text, _PAIR, _assigned)
    if "-" in text:
        yield from _below_names(text, _OPTION, _argument)
    if "</" in text:
        yield from _in_tags(text)
    if "(" in text:
        yield from _below_names(text, _CALL_WITH_NAME, _behind_name)
        yield from _below_names(text, _CALLED, _in_quotes)
    if "==" in text or "!=" in text:
        yield from _below_names(text, _COMPARED, lambda _, match: iter([_without_quotes(match)]))
    yield from _below_names(text, _PLACED, _placed)
    yield from _below_names(text, _SET, _argument)


def _in_quotes(text: str, match: re.Match[str]) -> Iterator[Span]:
    quoted = _quoted(text, match.end())
    if quoted is not None:
        yield quoted


def _behind_name(text: str, match: re.Match[str]) -> Iterator[Span]:
    if match["name"].upper() not in _WORDS_OF_OBJECTS:
        yield from _in_quotes(text, match)


def _without_quotes(match: re.Match[str]) -> Span:
    shown = match["v"]
    start = match.start("v") + len(shown) - len(shown.lstrip("\\\"'"))
    return start, max(start, match.end("v") - len(shown) + len(shown.rstrip("\\\"'")))


def _placed(text: str, match: re.Match[str]) -> Iterator[Span]:
    """The value of a line of two words; a sentence of two words has none."""
    start, end = _without_quotes(match)
    value = text[start:end]
    if match["set"] is None and end - start == match.end("v") - match.start("v"):
        name = match["name"]
        is_ordinary = _ORDINARY.fullmatch(value) is not None
        if name.upper() in _WORDS_OF_OBJECTS or (
            is_ordinary and (name.upper() in _PLAIN_NAMES or not name.islower())
        ):
            return
    yield start, end


def _in_tags(text: str) -> Iterator[Span]:
    for pattern in (_TAG, _TAG_WITH_NAME, _PROPERTY, _PROPERTY_LIST):
        for match in pattern.finditer(text):
            if is_secret_value(match["name"], match["v"]):
                yield match.span("v")


def _below_names(
    text: str, pattern: re.Pattern[str], find: Callable[[str, re.Match[str]], Iterator[Span]]
) -> Iterator[Span]:
    done = 0
    for match in pattern.finditer(text):
        name = match["name"].rstrip("])").strip("\"'")
        if name.startswith("D") and match.start() and text[match.start() - 1] == "-":
            # A property of Java.
            name = name[1:]
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
    elif _is_code(match) and not (match["sep"].strip() == "in" and text[start] == "["):
        return
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


def _is_code(match: re.Match[str]) -> bool:
    """True for what only programs write, where a text is in quotes: `a["b"] = c`, `a == c`."""
    separator = match["sep"].strip()
    named = match.groupdict().get("subscript")
    return separator in {"==", "===", "!=", "in", "<-"} or (named is not None and match["name"][0] in "\"'")


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
    start = match.end()
    separator = match["sep"]
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
    start = match.end()
    separator = match["sep"]
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
    quote = opened["q"]
    position = opened.end()
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
    indent = _indent(text, key)
    in_list = False
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


def _text(data: bytes) -> str:
    """The text that *data* is; empty if it is none."""
    try:
        text = data.decode()
    except ValueError:
        return ""
    return text if text.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in text) else ""
