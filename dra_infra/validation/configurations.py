"""The hand-written rules for selectors and opaque configs, which claims and classes share (validation.go)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dra_infra.model.device_class import DeviceSelector, OpaqueDeviceConfiguration
from dra_infra.model.markers import SECRET, UNKNOWN
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.expressions import check_selector
from dra_infra.validation.field_errors import FieldError, invalid, required, too_long
from dra_infra.validation.lists import check_items

MAX_PARAMETERS = 10 * 1024
"""Bytes of JSON (OpaqueParametersMaxLength in k8s.io/api/resource/v1)."""

MAX_DRIVER_NAME = 63


def check_selectors(
    selectors: Sequence[DeviceSelector] | None, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check a list of selectors, which may be those that were *stored* before."""
    yield from check_items(
        selectors,
        path,
        lambda selector, at: _check_selector(selector, at, release, stored=stored),
        size_rule="selectors.size",
        goes_on=release.number < 35,
    )


def _check_selector(
    selector: DeviceSelector, path: str, release: Release, *, stored: bool
) -> Iterator[FieldError]:
    if selector.cel is None:
        yield required("selectors.cel-required", f"{path}.cel")
    else:
        yield from check_selector(selector.cel.expression, f"{path}.cel.expression", release, stored=stored)


def check_configuration(
    opaque: OpaqueDeviceConfiguration | None, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check the driver and parameters of a config."""
    if opaque is None:
        yield required("config.opaque-required", f"{path}.opaque")
        return
    yield from _check_driver_name(opaque.driver, f"{path}.opaque.driver", release)
    yield from check_parameters(opaque.parameters, f"{path}.opaque.parameters", stored=stored)


def check_driver_name(
    name: str,
    path: str,
    *,
    rule: str = "config.driver",
    covered: bool = False,
    length_covered: bool = False,
    goes_on: bool = False,
) -> Iterator[FieldError]:
    """Check a driver's name; *rule* is the stem of the names of the rules (ValidateCSIDriverName).

    Up to 1.34 it *goes on* to the format of a name that is missing.
    """
    if not name:
        yield required(f"{rule}-required", path, covered=covered)
        if not goes_on:
            return
    if formats.size(name) > MAX_DRIVER_NAME:
        yield too_long(
            f"{rule}-length",
            path,
            MAX_DRIVER_NAME,
            origin="maxLength" if length_covered else "",
            covered=length_covered,
        )
    for told in formats.dns_subdomain(name.lower()):
        yield invalid(
            f"{rule}-format",
            path,
            name,
            told,
            origin="format=k8s-long-name-caseless" if covered else "",
            covered=covered,
        )


def _check_driver_name(name: str, path: str, release: Release) -> Iterator[FieldError]:
    yield from check_driver_name(
        name, path, covered=True, length_covered=release.number >= 36, goes_on=release.number < 35
    )


def check_parameters(
    parameters: Any, path: str, *, stored: bool = False, stem: str = "config.parameters"
) -> Iterator[FieldError]:
    """Check that *parameters*, or other data of a driver, are a small JSON object (validateRawExtension)."""
    if parameters is None:
        yield required(f"{stem}-required", path)
        return
    if parameters in (UNKNOWN, SECRET):
        return
    # The server counts the bytes that it was sent. Ours are the compact ones: what every client of ours sends.
    text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"))
    if not stored and formats.size(text) > MAX_PARAMETERS:
        yield too_long(f"{stem}-length", path, MAX_PARAMETERS)
    elif not isinstance(parameters, dict):
        yield invalid(f"{stem}-object", path, "<value omitted>", "must be a valid JSON object")
