"""Syntax errors in the API server's words.

Those words depend on how a parser that is generated from the grammar recovers. The engine's is generated from the same
grammar, so it is asked, and what it says is written as cel-go writes it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.cel.diagnostics import Diagnostic

_CONFIGURATION: Final = """
name: grammar
extensions:
  - {name: optional, version: 2}
  - {name: sets, version: 0}
  - {name: bindings, version: 0}
  - {name: two-var-comprehensions, version: 0}
  - {name: lists, version: 2}
"""

_ERROR: Final = re.compile(r"ERROR: <input>:(?P<line>-?\d+):(?P<column>-?\d+): (?P<message>.*)")
_ECHO: Final = " | "
_PREFIX: Final = "INVALID_ARGUMENT: "
_SUFFIX: Final = " [INVALID_ARGUMENT]"
_UNKNOWN_TOKEN: Final = re.compile(r"(Syntax error: token recognition error at: )'(.*)'", re.DOTALL)
_NO_FIELD: Final = re.compile(
    r"Syntax error: mismatched input .* expecting \{IDENTIFIER, ESC_IDENTIFIER\}", re.DOTALL
)
_WORD: Final = re.compile(r"no viable alternative at input '.(true|false|null)'")
_QUESTION: Final = re.compile(r"(Syntax error: .*)'\\u003F'(.*)")


_NUL: Final = "\0"
_CONTROLS: Final = tuple(chr(code) for code in range(1, 9))

_GIVEN_UP: Final = re.compile(r"More than \d+ parse errors\.")
"""The engine ends at fewer errors than cel-go, and counts some that neither prints."""


def find_syntax_errors(text: str) -> tuple[Diagnostic, ...]:
    """The syntax errors of a text that does not follow the grammar; none when the engine takes it, or gives up."""
    # The engine's report ends at the first NUL. To the grammar all control characters but those of blanks are alike.
    instead = next((each for each in _CONTROLS if each not in text), _NUL)
    if _NUL in text and instead != _NUL:
        errors = find_syntax_errors(text.replace(_NUL, instead))
        return tuple(each._replace(message=each.message.replace(instead, _NUL)) for each in errors)
    try:
        _parser().compile(text, disable_check=True)
    except RuntimeError as error:
        report = str(error).removeprefix(_PREFIX).removesuffix(_SUFFIX)
        said = [each for each in _split(report) if each.is_syntax and not _GIVEN_UP.search(each.message)]
        reworded = [_reword(each, text) for each in said]
        return tuple(told for each in reworded for told in (each, *_what_follows(each)))
    return ()


@lru_cache(maxsize=1)
def _parser() -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_CONFIGURATION))


def _what_follows(diagnostic: Diagnostic) -> tuple[Diagnostic, ...]:
    """Where the name of a field is missing, cel-go goes on, and stumbles over it again."""
    if _NO_FIELD.fullmatch(diagnostic.message):
        return (diagnostic._replace(message="unsupported ident kind"),)
    return ()


def _split(report: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for line in report.split("\n"):
        match = _ERROR.fullmatch(line)
        if match:
            found.append(Diagnostic(int(match["line"]), int(match["column"]), match["message"]))
        elif found and not line.startswith(_ECHO):
            found[-1] = found[-1]._replace(message=f"{found[-1].message}\n{line}")
    return found


_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _unescape(quoted: str, text: str) -> str:
    """The start of a text that the engine quotes with line breaks and tabs escaped, which cel-go does not do."""
    length, end = 0, 0
    while length < len(quoted) and end < len(text):
        length += len(_ESCAPES.get(text[end], text[end]))
        end += 1
    return text[:end]


def _reword(diagnostic: Diagnostic, text: str) -> Diagnostic:
    message = _QUESTION.sub(r"\1'?'\2", diagnostic.message)
    message = _WORD.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
    unknown = _UNKNOWN_TOKEN.fullmatch(message)
    if unknown:
        start = diagnostic.column - 1 + sum(len(line) + 1 for line in text.split("\n")[: diagnostic.line - 1])
        message = f"{unknown[1]}'{_unescape(unknown[2], text[start:])}'"
    return diagnostic._replace(message=message, column=diagnostic.column if text else 0)
