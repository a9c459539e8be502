"""The keys of quotas: which ones there are, and which of them count claims and devices."""

from __future__ import annotations

from typing import ClassVar, Final

from dra_infra.kubernetes.api.names import LABEL_LENGTH, SUBDOMAIN_LENGTH, label_key

MEASURED: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources of containers that have keys without a domain."""

IMPLICIT: Final = "requests.deviceclass.resource.kubernetes.io/"
"""The beginning of a key that counts devices of a class as an extended resource, before the name of the class."""

_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
_COUNTED: Final = frozenset(
    {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"}
    | {"persistentvolumeclaims", "services.nodeports", "services.loadbalancers"}
)
_MEASURED: Final = frozenset(
    {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in MEASURED} | {"requests.storage"}
)


def is_extended_resource(name: str) -> bool:
    """Check that quotas count pods for a resource as for an extended one."""
    return "/" in name and "kubernetes.io/" not in name.replace("deviceclass.resource.kubernetes.io/", "")


class QuotaKey(str):
    """A key of `spec.hard` of a ResourceQuota, or the name of a resource in a queue of Kueue, which counts devices alike.

    Args:
        text: The key as it is written.
    """

    __slots__ = ()

    CLAIMS: ClassVar[str] = "count/resourceclaims.resource.k8s.io"
    """Counts claims."""

    LONGEST_CLASS: ClassVar[int] = SUBDOMAIN_LENGTH - len(_DEVICES.partition("/")[0])
    """Characters of the name of a class that a key can have in it."""

    @staticmethod
    def of_class(class_name: str) -> str:
        """Return the key that counts devices of a class, whether claims or extended resources ask for them."""
        return f"{class_name}{_DEVICES}"

    @staticmethod
    def list_of_class(class_name: str, extended_resource_name: str | None = None) -> list[str]:
        """Return every key of `spec.hard` under which the API server counts devices of a class.

        Args:
            class_name: Name of the DeviceClass.
            extended_resource_name: What pods may ask for in place of a claim, where the class has such a name.
        """
        keys = [QuotaKey.of_class(class_name)]
        # The name of a resource has no more characters behind its domain: no pod can ask for a class with a longer name.
        if len(class_name) <= LABEL_LENGTH:
            keys.append(f"{IMPLICIT}{class_name}")
        return [*keys, f"requests.{extended_resource_name}"] if extended_resource_name else keys

    @property
    def class_name(self) -> str | None:
        """The class of which it counts devices in its own right; None where it does not."""
        return self.removesuffix(_DEVICES) if self.endswith(_DEVICES) else None

    @property
    def counts_class(self) -> bool:
        """Whether it counts devices of the class whose name is in it."""
        return self.endswith(_DEVICES) or self.startswith(IMPLICIT)

    @property
    def counts_devices(self) -> bool:
        """Whether it counts devices of a class, or an extended resource."""
        resource = self.removeprefix("requests.")
        return self.endswith(_DEVICES) or (resource != self and is_extended_resource(resource))

    @property
    def counts_claims(self) -> bool:
        """Whether it counts claims, or what these ask for."""
        return self == self.CLAIMS or self.counts_devices

    @property
    def is_known(self) -> bool:
        """Whether a quota may have it: a qualified name, or one of those without a domain that the server knows.

        Source: ValidateResourceQuotaResourceName in pkg/apis/core/validation/validation.go, IsStandardQuotaResourceName in
        pkg/apis/core/helper/helpers.go.
        """
        if "/" in self or self.startswith(("hugepages-", "requests.hugepages-")):
            return not label_key(self)
        return self in _COUNTED | _MEASURED

    @property
    def is_whole(self) -> bool:
        """Whether a quota limits it by a whole number (IsIntegerResourceName and IsExtendedResourceName)."""
        has_domain = "/" in self and "kubernetes.io/" not in self and not self.startswith("requests.")
        return self in _COUNTED or has_domain
