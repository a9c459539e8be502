"""A modest list of selectors: the CEL differential looks at the language, this one at where its errors end up."""

from __future__ import annotations

from random import Random

DOMAIN = "gpu.example.com"
LIMIT = 10240

VALID = (
    "true",
    f'device.driver == "{DOMAIN}"',
    f'device.attributes["{DOMAIN}"].model == "a100"',
    f'device.capacity["{DOMAIN}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'"model" in device.attributes["{DOMAIN}"]',
    f'device.attributes["{DOMAIN}"].flag',
    f'device.attributes["{DOMAIN}"].?cores.orValue(0) > 4',
    f'device.attributes["{DOMAIN}"].driverVersion.isGreaterThan(semver("1.2.3"))',
)
DERIVED = ('"node"', "1 + 1", "true", 'semver("1.2.3")', f'device.attributes["{DOMAIN}"].numa')
"""What an attribute may be derived by."""
VERSIONED = (
    "device.allowMultipleAllocations == true",
    f'device.attributes["{DOMAIN}"].model.includes("a100")',
    f'device.attributes["{DOMAIN}"].models.exists(m, m == "a100")',
    f'device.attributes["{DOMAIN}"].exists(k, v, k == "a")',
    "[1, 2].includes(1)",
    "[3, 1, 2].sort() == [1, 2, 3]",
    'semver("v1.0", true).major() == 1',
)
"""What some minors or gates refuse."""
INVALID = (
    "",
    " ",
    "tru",
    "device.",
    "1",
    '"text"',
    "device.driver",
    "device.unknown == 1",
    "device.driver == 1",
    'device.attributes["x"].y == 1 &&',
    "true\n&& fals",
    "device.attributes",
    'quantity("x")',
    "math.abs(-1) == 1",
    "é == 1",
    '"日本" == 日本',
    "[1,2,3].map(i, i * 2)",
)


def _nested(depth: int) -> str:
    names = "abcdefgh"[:depth]
    inner = f"{' + '.join(names)} > 0"
    for name in reversed(names):
        inner = f"[1,2,3,4,5,6,7,8,9,10].all({name}, {inner})"
    return inner


TOO_COSTLY = _nested(6)
A_FIFTH_OF_THE_LIMIT = _nested(4)
"""About; eight of these cost more than one expression may."""
EXPENSIVE = (
    TOO_COSTLY,
    _nested(5),
    A_FIFTH_OF_THE_LIMIT,
    "device.attributes.exists(a, device.attributes.exists(b, device.attributes.exists(c, a == b && b == c)))",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a == d))))",
)
DOMAIN_OF_245 = ".".join(["a" * 61, "a" * 61, "a" * 61, "a" * 59])
"""A DNS subdomain that is one too many for a label key once `requests.` stands before it."""


def of_bytes(count: int, letter: str = "a") -> str:
    """A valid expression of exactly *count* bytes in UTF-8, filled up with *letter*."""
    frame = '"" != "x"'
    filled = letter * ((count - len(frame)) // len(letter.encode()))
    padding = " " * (count - len(frame) - len(filled.encode()))
    return f'"{filled}" != "x"{padding}'


def valid(random: Random) -> str:
    """One that every minor accepts."""
    return random.choice(VALID)


def odd(random: Random) -> str:
    """One that some or all refuse, or that lies at the limit of the length."""
    pick = random.random()
    if pick < 0.55:
        return random.choice(INVALID)
    if pick < 0.75:
        return random.choice(VERSIONED)
    if pick < 0.9:
        return random.choice(EXPENSIVE)
    return of_bytes(random.choice((LIMIT - 1, LIMIT, LIMIT + 1)), random.choice(("a", "é", "日")))
