"""IP addresses and prefixes as Go's net/netip reads and prints them, and the functions `ip` and `cidr`.

Errors have Go's texts. Upstream of the functions and their methods: k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go.
"""

from __future__ import annotations

import re
from typing import Final

from dra_infra.kubernetes.api.go_text import quoted
from dra_infra.kubernetes.cel.interpreter.values import CIDR, IP, NO_SUCH_OVERLOAD, Err, Overloads, Value

_WIDTHS: Final = {4: 32, 6: 128}
_BITS = re.compile(r"[0-9]|[1-9][0-9]{1,17}", re.ASCII)
_GROUP = re.compile(r"[0-9a-fA-F]*", re.ASCII)


class _AddressError(ValueError):
    def __init__(self, text: str, message: str, at: str = "") -> None:
        super().__init__(f"ParseAddr({quoted(text)}): {message}{f' (at {quoted(at)})' if at else ''}")


def read_address(text: str) -> tuple[IP, str]:
    """An address and its zone (netip.ParseAddr).

    Raises:
        ValueError: With Go's text.
    """
    for character in text:
        if character == ".":
            return IP(4, _read_four(text, text)), ""
        if character == ":":
            return _read_six(text)
        if character == "%":
            raise _AddressError(text, "missing IPv6 address")
    raise _AddressError(text, "unable to parse IP")


def read_prefix(text: str) -> CIDR:
    """An address with the length of its prefix (netip.ParsePrefix).

    Raises:
        ValueError: With Go's text.
    """
    try:
        return _read_prefix(text)
    except ValueError as error:
        raise ValueError(f"netip.ParsePrefix({quoted(text)}): {error}") from error


def _read_prefix(text: str) -> CIDR:
    head, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address, zone = read_address(head)
    if zone:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        raise ValueError(f"bad bits after slash: {quoted(bits)}")
    if int(bits) > _WIDTHS[address.family]:
        raise ValueError("prefix length out of range")
    return CIDR(address, int(bits))


def is_mapped(address: IP) -> bool:
    """It is an address of version 4 within version 6, `::ffff:1.2.3.4`."""
    return address.family == 6 and address.number >> 32 == 0xFFFF


def print_address(address: IP) -> str:
    """Prints an address as Go does."""
    if address.family == 4:
        return ".".join(str(address.number >> shift & 255) for shift in (24, 16, 8, 0))
    groups = [address.number >> shift & 0xFFFF for shift in range(112, -1, -16)]
    start, end = _longest_zeros(groups)
    head, tail = (":".join(f"{group:x}" for group in part) for part in (groups[:start], groups[end:]))
    return f"{head}::{tail}" if end else head


def print_prefix(prefix: CIDR) -> str:
    """The text of a prefix."""
    return f"{print_address(prefix.address)}/{prefix.bits}"


def masked(prefix: CIDR) -> CIDR:
    """The prefix with nothing behind it."""
    rest = _WIDTHS[prefix.address.family] - prefix.bits
    return CIDR(IP(prefix.address.family, prefix.address.number >> rest << rest), prefix.bits)


def contains(prefix: CIDR, address: IP) -> bool:
    """Checks that an address is of the prefix."""
    if prefix.address.family != address.family:
        return False
    return (prefix.address.number ^ address.number) >> (_WIDTHS[address.family] - prefix.bits) == 0


def _longest_zeros(groups: list[int]) -> tuple[int, int]:
    """The first longest run of at least two zeros; the end is 0 without one."""
    best = len(groups)
    end = 0
    for start in range(len(groups)):
        stop = start
        while stop < len(groups) and groups[stop] == 0:
            stop += 1
        if stop - start >= 2 and stop - start > max(0, end - best):
            best = start
            end = stop
    return best, end


def _read_four(whole: str, part: str) -> int:
    fields: list[int] = []
    value, digits = 0, 0
    for place, character in enumerate(part):
        if character in "0123456789":
            if digits == 1 and value == 0:
                raise _AddressError(whole, "IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits = digits + 1
            if value > 255:
                raise _AddressError(whole, "IPv4 field has value >255")
        elif character == ".":
            if place in (0, len(part) - 1) or part[place - 1] == ".":
                raise _AddressError(whole, "IPv4 field must have at least one digit", part[place:])
            if len(fields) == 3:
                raise _AddressError(whole, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _AddressError(whole, "unexpected character", part[place:])
    if len(fields) < 3:
        raise _AddressError(whole, "IPv4 address too short")
    return int.from_bytes(bytes([*fields, value]), "big")


def _read_six(whole: str) -> tuple[IP, str]:
    rest, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _AddressError(whole, "zone must be a non-empty string")
    found = bytearray()
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis = 0
        rest = rest[2:]
        if not rest:
            return IP(6, 0), zone
    while len(found) < 16:
        group = _read_group(whole, rest)
        if rest[len(group) : len(group) + 1] == ".":
            found += _read_embedded(whole, rest, len(found), ellipsis)
            rest = ""
            break
        found += int(group, 16).to_bytes(2, "big")
        rest = rest[len(group) :]
        if not rest:
            break
        rest = _behind_colon(whole, rest)
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _AddressError(whole, "multiple :: in address", rest)
            ellipsis = len(found)
            rest = rest[1:]
            if not rest:
                break
    return IP(6, _expand(whole, rest, found, ellipsis)), zone


def _behind_colon(whole: str, rest: str) -> str:
    if rest[0] != ":":
        raise _AddressError(whole, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _AddressError(whole, "colon must be followed by more characters", rest)
    return rest[1:]


def _read_embedded(whole: str, rest: str, read: int, ellipsis: int) -> bytes:
    """An address of version 4 at the end of one of version 6."""
    if ellipsis < 0 and read != 12:
        raise _AddressError(
            whole, "embedded IPv4 address must replace the final 2 fields of the address", rest
        )
    if read + 4 > 16:
        told = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise _AddressError(whole, told, rest)
    return _read_four(whole, rest).to_bytes(4, "big")


def _read_group(whole: str, rest: str) -> str:
    match = _GROUP.match(rest)
    group = match[0] if match else ""
    if not group:
        raise _AddressError(whole, "each colon-separated field must have at least one digit", rest)
    if len(group) > 4:
        raise _AddressError(whole, "each group must have 4 or less digits", rest)
    return group


def _expand(whole: str, rest: str, found: bytearray, ellipsis: int) -> int:
    if rest:
        raise _AddressError(whole, "trailing garbage after address", rest)
    if len(found) < 16:
        if ellipsis < 0:
            raise _AddressError(whole, "address string too short")
        found[ellipsis:ellipsis] = bytes(16 - len(found))
    elif ellipsis >= 0:
        raise _AddressError(whole, "the :: must expand to at least one field of zeros")
    return int.from_bytes(found, "big")


_IP: Final = "net.IP"
_CIDR: Final = "net.CIDR"


def _address(text: str) -> IP | Err:
    try:
        address, zone = read_address(text)
    except ValueError as error:
        return Err(f"IP Address {quoted(text)} parse error during conversion from string: {error}")
    if zone:
        return Err(f"IP address {quoted(text)} with zone value is not allowed")
    if is_mapped(address):
        return Err(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _prefix(text: str) -> CIDR | Err:
    told = "network address parse error during conversion from string: "
    try:
        prefix = read_prefix(text)
    except ValueError as error:
        return Err(f"{told}{told}{error}")
    if is_mapped(prefix.address):
        return Err(f"{told}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return prefix


def _is_canonical(text: str) -> Value:
    address = _address(text)
    return address if isinstance(address, Err) else print_address(address) == text


def _contains_text(prefix: CIDR, text: str) -> Value:
    address = _address(text)
    # Upstream blames the type of what did not parse.
    return Err(NO_SUCH_OVERLOAD) if isinstance(address, Err) else contains(prefix, address)


def _contains_prefix(outer: CIDR, inner: CIDR) -> bool:
    return outer.bits <= inner.bits and contains(outer, inner.address)


def _contains_prefix_text(outer: CIDR, text: str) -> Value:
    inner = _prefix(text)
    return inner if isinstance(inner, Err) else _contains_prefix(outer, inner)


def _is_loopback(address: IP) -> bool:
    return address.number >> 24 == 127 if address.family == 4 else address.number == 1


def _is_unspecified(address: IP) -> bool:
    return address.number == 0


def _is_link_local_unicast(address: IP) -> bool:
    if address.family == 4:
        return address.number >> 16 == 0xA9FE
    return address.number >> 112 & 0xFFC0 == 0xFE80


def _is_link_local_multicast(address: IP) -> bool:
    if address.family == 4:
        return address.number >> 8 == 0xE00000
    return address.number >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(address: IP) -> bool:
    if address.family == 4:
        multicast = address.number >> 28 == 0xE
        if address.number == 0xFFFFFFFF:
            return False
    else:
        multicast = address.number >> 120 == 0xFF
    return not (
        multicast or _is_unspecified(address) or _is_loopback(address) or _is_link_local_unicast(address)
    )


NETWORK: Final[dict[str, Overloads]] = {
    "ip": ((("string",), _address), ((_CIDR,), lambda prefix: prefix.address)),
    "isIP": ((("string",), lambda text: type(_address(text)) is IP),),
    "ip.isCanonical": ((("string",), _is_canonical),),
    "family": (((_IP,), lambda address: address.family),),
    "isUnspecified": (((_IP,), _is_unspecified),),
    "isLoopback": (((_IP,), _is_loopback),),
    "isLinkLocalMulticast": (((_IP,), _is_link_local_multicast),),
    "isLinkLocalUnicast": (((_IP,), _is_link_local_unicast),),
    "isGlobalUnicast": (((_IP,), _is_global_unicast),),
    "cidr": ((("string",), _prefix),),
    "isCIDR": ((("string",), lambda text: type(_prefix(text)) is CIDR),),
    "containsIP": (((_CIDR, "string"), _contains_text), ((_CIDR, _IP), contains)),
    "containsCIDR": (((_CIDR, "string"), _contains_prefix_text), ((_CIDR, _CIDR), _contains_prefix)),
    "prefixLength": (((_CIDR,), lambda prefix: prefix.bits),),
    "masked": (((_CIDR,), masked),),
}
"""Functions of addresses."""
