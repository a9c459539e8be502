"""Claims as the plugin knows them: the devices that each was given, and what was prepared for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from dra_infra.errors import PluginError

State = Literal["started", "completed"]

_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_uid(uid: str) -> str:
    """*uid* where it is one as API servers make them, a UUID in lower case: it becomes part of file names.

    Raises:
        PluginError: `invalid-claim-uid`.
    """
    if is_uid(uid):
        return uid
    raise PluginError.of(
        path="claim.uid",
        code="invalid-claim-uid",
        message=f"{uid[:64]!r} is no UID of an API server",
        hint="requests come from the kubelet, with the claim's metadata.uid",
    )


def is_uid(text: str) -> bool:
    """True where *text* is a UUID in lower case."""
    return _UID.fullmatch(text) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimReference:
    """Reference to a claim, as the kubelet gives it: nothing of its allocation."""

    uid: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"ResourceClaim {self.namespace}/{self.name}"


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class ClaimDevice:
    """A device that a claim was allocated, a result of its status.

    Args:
        request: The main request's name, as the kubelet wants it.
        subrequest: Which of the request's alternatives was allocated; empty where it has none.
        share_id: Which share of a device that several claims have; empty where the device is the claim's alone.
        admin_access: Whether it is there for watching only, so that it is nobody's.
        configs: Opaque parameters for the device as JSON, what decides last: of the class before those of the claim, in
            the order of the allocation.
        named: For each of these, whether the allocation names the device's request in it: such a config has to be for such
            devices. Schedulers name it in configs of the class too, and from 1.37 on in none that is for all requests.
            Empty where that is not known, as in records of earlier builds, which are the same claim all the same.
        capacity: What a share takes of the device: names of capacities with quantities, sorted.
    """

    pool: str
    device: str
    request: str
    subrequest: str = ""
    share_id: str = ""
    admin_access: bool = False
    configs: tuple[str, ...] = ()
    named: tuple[bool, ...] = field(default=(), compare=False)
    capacity: tuple[tuple[str, str], ...] = ()

    def excludes(self, other: ClaimDevice) -> bool:
        """True where two claims cannot have both: one device, neither for admin access nor two shares of it."""
        if (self.pool, self.device) != (other.pool, other.device) or self.admin_access or other.admin_access:
            return False
        return not self.share_id or not other.share_id or self.share_id == other.share_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(ClaimReference):
    """An allocated claim of this driver.

    Args:
        devices: At least one, sorted.
        pod_claim_name: What a pod calls it, where it was made from a template; else empty.
    """

    pod_claim_name: str = ""
    devices: tuple[ClaimDevice, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceNode:
    """A device file that a container gets.

    What is not said of it, the runtime asks the node's own file for. With type and major number that file need not be there.

    Args:
        path: In the container.
        host_path: On the node, where that is another one.
        type: c or u for characters, b for blocks, p for a pipe.
        file_mode: Permissions of the file, such as 0o666.
        permissions: What the container's cgroup may, of r, w and m; all where empty.
    """

    path: str
    host_path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """A file or folder of the node that a container sees, read-only where nothing else is said."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ("ro", "nosuid", "nodev", "bind")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hook:
    """A program of the node that the runtime starts while it makes a container (OCI runtime specification, hooks).

    Args:
        name: When, such as createContainer.
        path: The program, absolute.
        arguments: Its name first.
    """

    name: str
    path: str
    arguments: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Edits:
    """Changes of a container for a device (CDI containerEdits); at least one, else runtimes refuse the CDI spec.

    Args:
        env: `NAME=value`.
        additional_gids: Groups that the container's process gets besides its own, to open device files of theirs.
    """

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A claim's preparation, as the checkpoint has it.

    Args:
        preparation: Tells this preparation from earlier ones of the claim: part of its CDI ids, for runtimes remember specs.
        boot_id: Which boot of the machine it was in.
        edits: One for each of the claim's devices, in their order; none while it is only started.
    """

    claim: Claim
    state: State
    preparation: str
    boot_id: str
    edits: tuple[Edits, ...] = ()


def find_holder(claim: Claim, records: Iterable[Record]) -> tuple[ClaimDevice, Record] | None:
    """A device of *claim* that another claim holds, and who does."""
    wanted: dict[tuple[str, str], list[ClaimDevice]] = {}
    for mine in claim.devices:
        wanted.setdefault((mine.pool, mine.device), []).append(mine)
    for record in records:
        if record.claim.uid != claim.uid:
            for theirs in record.claim.devices:
                for mine in wanted.get((theirs.pool, theirs.device), ()):
                    if mine.excludes(theirs):
                        return mine, record
    return None
