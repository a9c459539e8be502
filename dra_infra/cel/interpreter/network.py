"""`ip`, `cidr` and their methods (k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go)."""

from __future__ import annotations

from typing import Final

from dra_infra.cel.interpreter.addresses import (
    contains,
    is_mapped,
    masked,
    print_address,
    read_address,
    read_prefix,
)
from dra_infra.cel.interpreter.numbers import quote
from dra_infra.cel.interpreter.signatures import Overloads
from dra_infra.cel.interpreter.values import CIDR, IP, NO_SUCH_OVERLOAD, Err, Value

_IP: Final = "net.IP"
_CIDR: Final = "net.CIDR"


def _address(text: str) -> IP | Err:
    try:
        address, zone = read_address(text)
    except ValueError as error:
        return Err(f"IP Address {quote(text)} parse error during conversion from string: {error}")
    if zone:
        return Err(f"IP address {quote(text)} with zone value is not allowed")
    if is_mapped(address):
        return Err(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _prefix(text: str) -> CIDR | Err:
    told = "network address parse error during conversion from string: "
    try:
        prefix = read_prefix(text)
    except ValueError as error:
        return Err(f"{told}{told}{error}")
    if is_mapped(prefix.address):
        return Err(f"{told}IPv4-mapped IPv6 address {quote(text)} is not allowed")
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
