"""Bills of materials in CycloneDX: what the wheel is pinned to, and what is in the image."""

from __future__ import annotations

import json
import platform
import re
import tarfile
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from tools.errors import ToolError
from tools.image import plugin_image

_PIN: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>.*(?:\n +--hash=.*)*)", re.MULTILINE
)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Subject:
    """What a bill of materials is about.

    Args:
        name: Such as `dra-infra`.
        version: Its version.
        sha256: Of the file.
        is_image: Whether it is an image, and not a wheel.
    """

    name: str
    version: str
    sha256: str
    is_image: bool


def python_packages(requirements: Path) -> list[Component]:
    """A component for each pin of *requirements*, with the hashes of all files that may be installed for it."""
    return [
        _component("pypi", found["name"], found["version"], _HASH.findall(found["rest"]))
        for found in _PIN.finditer(requirements.read_text())
    ]


def packages_of_image(archive: Path, requirements: Path) -> list[Component]:
    """A component for each package that is in the image, of Debian or of Python; ours is the image itself.

    Args:
        archive: The image.
        requirements: Says with which hashes its Python packages are pinned.

    Raises:
        ToolError: When the image has something that is not pinned there, or lacks something that is.
    """
    contents = contents_of_image(archive)
    pins = {each.name: each for each in python_packages(requirements)}
    installed = {canonicalize_name(each["name"]): each["version"] for each in contents["python"]}
    installed.pop(canonicalize_name("dra-infra"), None)
    pinned = {name: each.version for name, each in pins.items()}
    if installed != pinned:
        differing = sorted(dict(installed.items() ^ pinned.items()))
        raise ToolError(f"the image has other releases than {requirements.name} pins: {', '.join(differing)}")
    distribution = platform.freedesktop_os_release()["ID"]
    system = [
        _component("deb", each["name"], each["version"], [each["sha256"]], namespace=distribution)
        for each in contents["debian"]
    ]
    return [*system, *(pins[name] for name in sorted(installed))]


def contents_of_image(archive: Path) -> Any:
    """The list of packages that the image carries.

    Raises:
        ToolError: When it has none.
    """
    with tarfile.open(archive) as outer:
        for blob in outer:
            if not blob.name.startswith("blobs/") or (file := outer.extractfile(blob)) is None:
                continue
            # Blobs that are JSON are no layers.
            try:
                layer = tarfile.open(fileobj=file)  # noqa: SIM115  (closed below)
            except tarfile.ReadError:
                continue
            with layer:
                if (entry := next((each for each in layer if each.name == plugin_image.CONTENTS), None)) and (
                    listed := layer.extractfile(entry)
                ):
                    return json.load(listed)
    raise ToolError(f"{archive.name} has no {plugin_image.CONTENTS}")


def write(subject: Subject, components: Iterable[Component], *, time: int) -> str:
    """The bill of materials of *subject* as JSON; equal input gives equal text.

    Args:
        subject: What it is about.
        components: What is in it.
        time: Seconds since 1970 that it is dated with.
    """
    about = Component(
        type=ComponentType.CONTAINER if subject.is_image else ComponentType.LIBRARY,
        name=subject.name,
        version=subject.version,
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=subject.sha256)],
        bom_ref=subject.name,
        purl=None if subject.is_image else PackageURL("pypi", name=subject.name, version=subject.version),
    )
    bom = Bom(components=components)
    bom.metadata.component = about
    bom.metadata.timestamp = datetime.fromtimestamp(time, UTC)
    # Names the bill by what it is about: the file has that hash once.
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, f"sha256:{subject.sha256}")
    bom.register_dependency(about, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _component(
    kind: str, name: str, version: str, hashes: Iterable[str], *, namespace: str | None = None
) -> Component:
    qualifiers: Mapping[str, str] = {"arch": _ARCHITECTURES.get(platform.machine(), platform.machine())}
    package = PackageURL(kind, namespace, name, version, dict(qualifiers) if namespace else None)
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
        bom_ref=str(package),
        purl=package,
    )


_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
