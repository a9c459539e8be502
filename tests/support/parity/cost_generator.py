"""Random CEL expressions whose evaluation costs something else each time, up to the server's limit and above it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

_HOLE = re.compile(r"<(\w+)>")
_DEPTH: Final = 4
LENGTHS: Final = (0, 1, 9, 10, 11, 99, 100, 101, 400)
"""Of texts: costs are tenths of a length, rounded up."""

GRAMMAR: Final[dict[str, tuple[str, ...]]] = {
    "bool": (
        *("(<bool> && <bool>)", "(<bool> || <bool>)", "!(<bool>)", "(<bool> ? <bool> : <bool>)"),
        *("<text>.contains(<text>)", "<text>.startsWith(<text>)", "<text>.endsWith(<text>)"),
        *("<text>.matches(<pattern>)", "<text>.matches(<text>)", "matches(<text>, <text>)"),
        *("<text> == <text>", "<text> != <text>", "<text> < <text>", "<int> <= <int>", "<list> == <list>"),
        *('{"false": <bool>}[string(<int> in [])]', '{"device": <bool>}.device', "(1 / 0 in [])"),
        *("<int> in <list>", "(<bool> in [true])", "<list>.isSorted()", "[<text>, <text>].includes(<text>)"),
        *(
            "sets.contains(<list>, <list>)",
            "sets.equivalent(<list>, <list>)",
            "sets.intersects(<list>, <list>)",
        ),
        *("<list>.all(v, <bool>)", "<list>.exists(v, <bool>)", "<list>.exists_one(v, v == <int>)"),
        *("<list>.all(i, v, <bool> || v == i)", "cel.bind(v, <int>, <bool> && v == <int>)"),
        *("optional.of(<bool>).orValue(<bool>)", "optional.of(<int>).optMap(v, <bool>).orValue(<bool>)"),
        *('(<bool> ? {"a": <bool>} : {"a": <bool>}).a', '{"k": <bool>}[<text>]', "[<bool>, <bool>][<int>]"),
        *(
            "[?optional.of(<bool>)][0]",
            'has({"a": <bool>}.a)',
            "dyn(<bool>)",
            "bytes(<text>) == bytes(<text>)",
        ),
    ),
    "bool_leaf": (
        *("true", "false", "1 / 0 == 1", "dyn(1) == 'a'", "dyn('a') < 'b'", "dyn(1).startsWith('a')"),
        *('device.driver.startsWith("d")', "device.allowMultipleAllocations", '"d" in device.attributes'),
        *('device.attributes["d"].?a.orValue(1) == 1', "device.attributes[?'d'].?a.hasValue()"),
        *("isQuantity(<text>)", "isURL(<text>)", 'isIP("1.2.3.4")', 'ip("::1") != ip("::2")'),
        *('cidr("10.0.0.0/13").containsIP("10.1.2.3")', 'cidr("::/33").containsCIDR(cidr("::/64"))'),
        *("format.dns1123Label().validate(<text>).hasValue()", 'quantity("1") == quantity("1")'),
    ),
    "text": (
        *("(<text> + <text>)", "<text>.lowerAscii()", "<text>.replace(<text>, <text>)", "<text>.trim()"),
        *("<text>.substring(<int>)", "<text>.split(<text>).join(<text>)", "strings.quote(<text>)"),
        *('"%s%d".format([<text>, <int>])', "<text>.find(<text>)", "string(bytes(<text>))", "string(<int>)"),
    ),
    "int": (
        *("(<int> + <int>)", "-(<int>)", "size(<text>)", "<list>.size()", "<text>.indexOf(<text>)"),
        *("<list>.max()", "<list>.sum()", "<list>[0]", "(<bool> ? <int> : <int>)", "<list>.indexOf(<int>)"),
    ),
    "list": (
        *("<list>.map(v, v + <int>)", "<list>.filter(v, <bool>)", "(<list> + <list>)", "<list>.sort()"),
        *("<list>.sortBy(v, -v)", "<list>.distinct()", "<list>.reverse()", "<list>.slice(0, <int>)"),
        *(
            "[[<int>], <list>].flatten(<depth>)",
            "[[<int>], <list>].flatten(1)",
            "[<int>, <int>]",
            "dyn(<list>)",
        ),
    ),
}


class CostGenerator:
    """Gives the same expressions for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  (reproducible cases, no secrets)

    def expressions(self, count: int) -> Iterator[str]:
        """*count* expressions; every third goes round a loop so often that its cost is about the limit."""
        for number in range(count):
            if number % 3:
                yield self._fill("bool", _DEPTH)
            else:
                rounds = self._random.choice((1, 10, 100, 300, 3_000))
                yield f"lists.range({rounds}).all(x, ({self._fill('bool', 2)}) || true)"

    def _fill(self, kind: str, depth: int) -> str:
        if depth == 0 or (kind != "bool" and self._random.random() < 0.4):
            return self._leaf(kind)
        template = self._random.choice(GRAMMAR.get(kind, ("",))) or self._leaf(kind)
        return _HOLE.sub(lambda hole: self._fill(hole[1], depth - 1), template)

    def _leaf(self, kind: str) -> str:
        pick = self._random.choice
        match kind:
            case "bool":
                return _HOLE.sub(lambda hole: self._leaf(hole[1]), pick(GRAMMAR["bool_leaf"]))
            case "int":
                return pick(("0", "1", "2", "5", "64"))
            case "list":
                return pick(("[1, 2, 3]", "[0]", "lists.range(10)", "lists.range(100)", "[1, dyn(2)]"))
            case "depth":
                return pick(("-1", "-4", "0", "2", "64", str(2**62), str(2**63 - 1)))
            case "pattern":
                return f'"{"b" * pick((1, 4, 40, 401))}"'
        return pick((f'"{pick("aé") * pick(LENGTHS)}"', "device.driver"))
