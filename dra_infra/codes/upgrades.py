"""Codes of upgrades to another release of Kubernetes."""

from __future__ import annotations

UPGRADES: dict[str, str] = {
    "upgrade-order": "an upgrade is asked for to a release that is not newer",
    "upgrade-refused": "an object that the older release accepts is refused by the newer one when it is created",
    "upgrade-accepted": "only the newer release accepts an object",
    "upgrade-write-refused": "each further write of a stored object is refused after the upgrade",
    "upgrade-apply-refused": "an object cannot be applied again to what the older release stored of it",
    "upgrade-field-lost": "a stored field is not known to the newer release, and is lost",
    "upgrade-field-differs": "a field is dropped, ignored or filled in on one of two releases only",
    "upgrade-program-differs": "a program does not run for the newer release, or writes another object for it",
    "upgrade-advice": "a warning about an object holds for one of two releases only",
    "upgrade-stored-version": "etcd has objects in a version that the newer release no longer writes",
    "upgrade-selector-differs": "a selector costs something else, or selects other devices, on the newer release",
    "upgrade-placement-differs": "pods of a workload go elsewhere, get other devices, or fit on one of two releases only",
    "upgrade-joint-differs": "whether all workloads fit at once differs between two releases",
    "upgrade-evicts": "a pod with a tainted device is evicted on one of two releases only",
    "upgrade-quota": "claims count under a key of a quota on one of two releases only",
    "upgrade-metric": "a metric is renamed, or an object asks for a name that the newer release does not have",
    "upgrade-gate": "a feature gate is new, removed, locked, or set otherwise by default",
    "upgrade-driver": "a driver or chart does not work with the newer release",
}
