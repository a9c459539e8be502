"""Problems as data, and the one error tree.

Every finding of the product is a `Problem`; an exception carries all problems that were found, sorted,
so that one look fixes all. `CODES` is the complete list of stable codes; `docs/errors.md` has a section for each
and a contract test compares both.

    DraInfraError
    ├── InvalidSpecError      a pure spec was given arguments that break rules
    ├── SelectorError         a Python selector was written in a way that would lose a clause or a type
    ├── ProgramError          the user's program raised, never ended, or could not be found
    ├── FleetError            a fleet could not be read
    ├── ForgeError            a forge did not take a comment
    ├── ClusterError          a live cluster could not be read
    ├── ScaffoldError         a new project was not laid out
    └── PluginError           the node plugin did not prepare or release a claim
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Place:
    """Where in the user's files something is written; `line` and `column` count from 1, 0 means not known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        position = "".join(f":{number}" for number in (self.line, self.column) if number)
        return f"{self.file}{position}"


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Problem:
    """One thing that the author of a program can fix.

    Args:
        path: What is wrong, in the user's terms: `GpuClaimTemplate("trainer").count`, or a field path of an object.
        code: Stable slug from `CODES`.
        message: What is wrong with which value.
        hint: What to do, with the line to write where it is known.
        severity: `error` fails the run, `warning` does not.
        place: File and line of the user's code, where known.
    """

    path: str
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    place: Place | None = field(default=None, compare=False)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        # A program's own error has the file for a path: it is told once.
        path = "" if self.place and self.place.file == self.path else f"{self.path}: "
        line = f"{where}{path}{self.message} [{self.code}]"
        return f"{line}\n  hint: {self.hint}" if self.hint else line

    def at(self, place: Place | None) -> Problem:
        """The same problem with the place where the user wrote it."""
        return replace(self, place=place)

    def below(self, prefix: str) -> Problem:
        """The same problem with its path put below *prefix*."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return replace(self, path=f"{prefix}{joint}{self.path}")


def in_reading_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """*problems* without repetitions, as a reader goes through the files; those without a place come last."""
    return tuple(
        sorted(
            dict.fromkeys(problems),
            key=lambda problem: (problem.place is None, problem.place or Place(file=""), problem),
        )
    )


class DraInfraError(Exception):
    """Base of everything that this package raises on purpose."""


class ProblemsError(DraInfraError):
    """An error that carries problems; `problems` is in reading order and never empty."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = in_reading_order(problems)
        super().__init__("\n".join(map(str, self.problems)))


class InvalidSpecError(ProblemsError):
    """A spec was given arguments that break one or more rules."""


class SelectorError(ProblemsError, TypeError):
    """A selector was written in a way that Python would silently change or that can never match."""

    def __init__(self, message: str, *, code: str, hint: str = "", path: str = "selector") -> None:
        super().__init__([Problem(path=path, code=code, message=message, hint=hint)])


class ProgramError(ProblemsError):
    """The user's program raised, never ended, or could not be found; `place` is the user's line."""


class FleetError(ProblemsError):
    """A fleet could not be read."""


class ForgeError(ProblemsError):
    """A comment could not be posted or brought up to date; no message holds a secret."""


class ClusterError(ProblemsError):
    """A live cluster could not be read; no message holds a credential."""


class ScaffoldError(ProblemsError):
    """A new project was not laid out; its folder is as it was."""


class PluginError(ProblemsError):
    """The node plugin did not prepare or release a claim, or cannot keep its files."""


CODES: dict[str, str] = {
    # One line per code: what it means. Grouped by where it is found.
    # target
    "unknown-gate": "the target names a feature gate that its Kubernetes does not have",
    "locked-gate": "the target sets a feature gate that its Kubernetes has locked",
    "gate-needs-gate": "the target turns a feature gate on without another that it needs",
    # components
    "wrong-type": "an argument or field has a value of another type",
    "unknown-argument": "a component has no such argument",
    "alias-of-another-kind": "an alias names a kind of object that the component does not make",
    "import-of-another-name": "the object to import is not the one that the component makes",
    "ignored-content": "options ignore changes of what the object's name is made of",
    "missing-argument": "an argument that is needed is not given",
    "invalid-name": "a name is not in the format that Kubernetes asks for",
    "count-below-one": "a request asks for no device",
    "too-many-devices": "a claim asks for more devices than the scheduler allocates to one",
    "too-many-items": "a list is longer than the API server takes",
    "duplicate-request": "two requests of a claim have one name",
    "unknown-request": "something names a request that the claim does not have",
    "shorthand-with-requests": "device_class, count or select is given beside requests",
    "invalid-attribute-name": "an attribute of a constraint is not a domain and a name",
    "needs-newer-kubernetes": "the target's Kubernetes does not have what is asked for",
    "unknown-kubernetes": "the target names a Kubernetes minor that is not supported",
    "unknown-container": "a claim is attached to a container that the pod does not have",
    "containers-not-named": "a claim is attached to a pod with several containers, and none is named",
    "claim-attached-twice": "a container uses a claim, or a request of it, twice",
    # groups of GPUs joined by NVLink
    "unknown-system": "a board, server or rack is named that is not known here",
    "nvlink-not-promised": "nothing promises that so many GPUs of the target are joined by NVLink",
    "nvlink-group-shape": "the GPUs of a group, its pods and the workload do not agree",
    "nvlink-not-measured": "that GPUs are joined by NVLink is likely, and was not measured",
    "compute-domain-option": "an option of a ComputeDomain is not possible with the release, its gates or the others",
    "compute-domain-nodes": "the number of nodes of a ComputeDomain is more than a rack has, or does nothing",
    "compute-domain-twice": "a pod joins two ComputeDomains",
    "channel-template-taken": "the claim template of a ComputeDomain, which the driver makes, is in the input too",
    "arguments-exclude": "arguments of a component exclude each other",
    "mig-not-supported": "the GPU that is named cannot do MIG, or its profiles are not known here",
    "mig-profile-not-known": "no GPU, or not the one that is named, has a MIG profile of that name",
    "mig-none-large-enough": "no MIG profile has as much memory or compute as is asked for",
    "mig-not-placeable": "a set of MIG profiles that must be on one GPU does not fit one",
    # programs
    "no-project": "there is no Pulumi project in the folder",
    "invalid-project": "Pulumi.yaml or a stack file cannot be read, or lacks something",
    "stack-not-known": "a stack was named that has no file, where others have one",
    "unknown-setting": "there is no such setting of a stack",
    "duplicate-urn": "two resources of a program have one URN",
    "program-raised": "the program raised an error",
    "program-exited": "the program ended itself",
    "program-timeout": "the program did not end in time",
    "program-died": "the process of a program ended without an answer",
    # engine
    "engine-not-found": "the Pulumi CLI is not on PATH",
    "engine-passphrase": "the engine has no passphrase for the stack, or a wrong one",
    "engine-backend": "nobody is logged in, or the backend with the state is out of reach",
    "engine-stack-missing": "the backend has no such stack",
    "engine-stack-locked": "another run holds the stack",
    "engine-plugin-missing": "the engine lacks a plugin",
    "engine-cluster-away": "the engine could not reach the cluster",
    "engine-timeout": "the engine's preview did not end in time",
    "engine-failed": "the engine ended without a preview, for a reason that is not known",
    "engine-not-for-source": "a review of manifests or of a chart has no engine",
    "engine-error": "the program or the engine reported an error in the preview",
    "engine-refused": "the engine's preview failed at a resource",
    "policy-violated": "a resource breaks a policy",
    "no-repository": "a review was asked for outside a git repository",
    "no-git": "git is not installed",
    "base-not-found": "the base revision of a review is not in the repository",
    "base-not-archived": "git cannot unpack the base revision of a review",
    "values-unreadable": "a file with values of a chart cannot be read",
    "report-not-written": "a file for a report cannot be written",
    "no-fleet": "a placement was asked for without a fleet",
    # objects
    "unknown-field": "an object has a field that the API does not have, which the server drops silently",
    "missing-field": "an object lacks a field that the API server requires",
    "one-of": "exactly one of several fields must be set",
    "count-with-all": "a count is given with allocationMode All",
    "unknown-kind": "the group resource.k8s.io has no such kind",
    "field-not-in-version": "a field cannot be held by the API version or minor that an object is converted to",
    "unknown-version": "the target's Kubernetes does not know a kind in the version that is written",
    "version-not-served": "a version of resource.k8s.io is off by default, and the target does not serve it",
    "field-not-allowed": "a field may not be set in this place",
    "field-immutable": "a field changes that never may",
    "field-dropped": "the server clears a field without a word, for its feature gate is off",
    "field-ignored": "the server stores a field that its scheduler ignores, for the feature gate is off",
    "unsupported-value": "a value is not one of those that the field can have",
    "value-too-long": "a text or a JSON value has too many bytes",
    "duplicate-item": "a list that must not repeat an item does",
    "invalid-label": "a label, annotation, finalizer or toleration has a malformed key or value",
    "invalid-metadata": "the metadata of an object contradicts itself",
    "invalid-toleration": "a toleration has a value although it asks for none",
    "invalid-parameters": "the parameters of a config are not a JSON object",
    "invalid-extended-resource": "an extended resource name is malformed or Kubernetes' own",
    "slice-nodes": "a slice or device does not say in one way which nodes it is for",
    "counters-beside-devices": "a slice has both counters and devices, which need slices of their own",
    "invalid-pool": "a slice's pool has no slice, or a negative generation",
    "invalid-node-selector": "a node selector has no term, an unknown operator, or values that its operator does not take",
    "invalid-version": "a version of an attribute is none of semver.org",
    "invalid-binding": "binding conditions of success and failure do not go together",
    "invalid-request-policy": "a capacity's policy contradicts itself, or its capacity",
    "unknown-counter": "a device takes from a counter that its slice does not have",
    "invalid-partition-type": "devices of a slice do not have the attribute that tells their partition type",
    "invalid-skipping": "a driver skips preparing devices, and not its undoing",
    "invalid-node-resources": "what a device counts against its node contradicts itself",
    "server-fails": "an API server fails over an object and does not answer",
    "claim-not-allocated": "a claim's status speaks of devices or consumers without an allocation for them",
    "invalid-share-id": "the id of a device's share is no UUID in its usual form",
    "invalid-address": "an address of an interface is not in CIDR form",
    "driver-not-lowercase": "the driver's name in a slice has upper-case letters",
    "admin-access-namespace": "admin access is asked for in a namespace without the label for it",
    "derived-attribute-unused": "a derived attribute is compared by no constraint",
    "duplicate-claim": "two claims of a pod have one name",
    "product-not-known": "a selector asks for a GPU product that is not known here: misspelt, or newer than this release",
    "claim-not-in-pod": "a container uses a claim that the pod does not list",
    # cel
    "selector-used-as-bool": "a selector was used with and, or, not, if or a chained comparison",
    "selector-used-with-in": "`in` was used on an attribute",
    "selector-type": "an attribute is compared with a value of another type",
    "selector-invalid-value": "a quantity, version or attribute name in a selector is malformed",
    "cel-syntax": "a CEL expression does not parse",
    "cel-type": "a CEL expression does not type-check or is not a test",
    "cel-too-long": "a CEL expression is longer than 10240 bytes",
    "cel-too-costly": "a CEL expression may cost more than 1,000,000, by the server's estimate",
    "cel-unguarded-read": "a CEL expression reads an attribute that a device may lack, which blocks scheduling",
    "cel-not-decided-here": "a CEL expression is beyond what the engine here can decide",
    # advice: the server accepts it
    "attribute-not-known": "a selector or constraint names an attribute or capacity that the pinned driver does not publish",
    "attribute-other-release": "a selector or constraint names an attribute that only other releases of the driver publish",
    "attribute-wrong-domain": "a selector or constraint names an attribute under the domain of another driver",
    "attribute-is-capacity": "a capacity is used as an attribute, or an attribute as a capacity",
    "attribute-of-other-device": "a selector or constraint names an attribute that this type of device never has",
    "attribute-value-not-known": "a selector compares an attribute with a value that no known device has",
    "cel-value-type": "a selector compares an attribute with a value of another type",
    "quantity-unit-slip": "a selector asks for an amount of memory that no card has: the unit slipped",
    "memory-just-missed": "a selector asks for a little more memory than cards of that size report",
    "selector-always-true": "a selector is true of every device",
    "selector-never-true": "a selector is false on every device that reaches it",
    "selector-implied": "the class or an earlier selector already says what a selector says",
    "request-shadowed": "an alternative of a prioritized list is never taken",
    "too-many-tolerations": "a request has more than 16 tolerations",
    "namespace-not-known": "an object is in a namespace that is not in the input, which has others",
    "extended-resource-twice": "two device classes have one extended resource name",
    "mig-not-in-fleet": "no MIG device of the fleet has the profile that is asked for",
    "no-fabric": "a ComputeDomain on a fleet whose GPUs are not joined across nodes",
    "partition-size": "a constraint on a fabric partition does not fit the number of GPUs",
    "config-not-applied": "a configuration does nothing: it names a prioritized request, or asks for what its kind cannot do",
    "unknown-driver-release": "a driver release is named that is not known here",
    # platform
    "unknown-chart-value": "a chart has no value of that name, which Helm drops silently",
    "chart-value-type": "a value of a chart has another type than the chart expects",
    "values-not-known": "the values of that version of a chart are not known here, so they are not checked",
    "unknown-driver-gate": "a feature gate is named that the release of the driver does not have",
    "driver-gate-conflict": "feature gates of the driver exclude each other, or one needs another",
    "driver-gate-off": "a value asks for what a feature gate of the driver has turned off",
    "unknown-chart-version": "a product has no such version, or the version is one of another chart",
    "value-set-twice": "a value of a chart is written by an argument and again under values",
    "chart-template-fails": "the templates of a chart refuse values that exclude or need each other",
    "helm-not-found": "charts are to be rendered, and there is no helm",
    "chart-not-rendered": "helm cannot get a chart, or its templates or schema refuse the values",
    "chart-value-unused": "nothing reads a value of a chart, because another one turns its reader off",
    "gpu-resources-consent": "the DRA driver gives out GPUs, and nobody says that the device plugin is off",
    "device-plugin-beside-dra": "the device plugin and the DRA driver both give out the GPUs of a node",
    "platform-conflict": "parts of a platform exclude each other, or look for something in different places",
    "version-matrix": "versions of Kubernetes, chart, driver or kernel driver do not go together",
    "namespace-refused": "a driver cannot run in a namespace: it is default, or lets no privileged pods in",
    "eviction-label": "the operator cannot evict the DRA driver before it unloads the kernel driver",
    "node-labels-missing": "nodes of a pool lack labels that an installation looks for",
    "chart-upgrade": "an upgrade of the DRA driver fails on its way, or leaves old CRDs behind",
    "not-a-crd": "a file of CRDs holds something else",
    # configs of devices
    "config-kind-not-known": "the release of a driver decodes no config of that apiVersion and kind",
    "config-field-not-known": "a config has a field that the release of the driver does not decode",
    "config-value": "a field of a config is missing, or has a value that the driver does not take",
    "config-conflict": "fields of a config, or configs of a claim, exclude each other",
    "config-needs-gate": "a config asks for what a feature gate of the driver has turned off",
    "config-device-type": "a config is of a kind for another type of device than the request gets",
    "sharing-conflict": "ways of sharing a GPU exclude each other",
    "too-many-consumers": "more pods are to share a claim than the API server takes",
    "config-overridden": "a config, or a field of one, never counts, because a later config replaces it whole",
    "config-refused-by-webhook": "a claim has a config that the webhook of the driver refuses",
    "extended-resource-not-served": "a pod asks for nvidia.com/gpu where no class and no device plugin serves it",
    # review
    "file-unreadable": "a file or folder is not there, may not be read, or holds nothing to read",
    "nothing-checked": "the input holds no object, so there is no answer",
    "lfs-pointer": "a file stands for one that Git LFS did not fetch",
    "duplicate-object": "an object is written twice in the manifests of a review",
    "not-utf-8": "a file is not UTF-8",
    "yaml-syntax": "a text is not YAML, or holds values that JSON does not know",
    "yaml-duplicate-key": "a key is written twice in one YAML mapping",
    "yaml-too-large": "a YAML text is too long, nested too deep, or unfolds into too many values",
    "yaml-not-an-object": "a YAML document is a list or a single value instead of an object",
    "claim-spec-immutable": "the spec of a claim or claim template changes under a name that stays",
    "pod-claims-immutable": "the resourceClaims of a bare pod change, which the API server refuses",
    "no-longer-fits": "a workload that fitted the fleet no longer fits",
    "does-not-fit": "a new workload fits no node of the fleet",
    "job-replaced": "danger: a Job is deleted and created again, and its running pods are killed",
    "pod-replaced": "danger: a bare pod is deleted and created again",
    "workload-replaced": "danger: a Deployment, StatefulSet or DaemonSet is deleted and created again",
    "workload-rolls": "danger: pods with devices are rolled over, which needs devices for old and new pods at once",
    "claim-rolls": "danger: a shared claim gets a new name, and old and new one hold devices at once",
    "claim-replaced": "danger: a claim or template is deleted before the new one exists",
    "class-changed": "danger: what a device class selects changes, while allocated claims keep their devices",
    "used-object-deleted": "danger: an object is deleted that pods or claims still name",
    "crowded-out": "danger: a workload fits alone, but found no room beside the others",
    "object-moved": "danger: one resource creates an object that another one deletes",
    "workload-deleted": "danger: an object is deleted whose pods run or hold devices",
    "name-only-changed": "danger: a claim or template of a component gets another name for the same content",
    "namespace-deleted": "danger: a namespace is deleted, with all that is in it",
    "definition-deleted": "danger: a CustomResourceDefinition is deleted, with every object of its kind",
    "rights-widened": "danger: a role, a binding or a namespace allows what was not allowed before",
    "admin-access-added": "danger: a claim asks for admin access, or a namespace begins to allow it",
    "quota-passed": "danger: claims or extended resources pass a ResourceQuota",
    "release-removed": "danger: a Helm release is uninstalled",
    "release-changed": "danger: a Helm release gets another version or other values",
    "release-values-reset": "danger: values of a Helm release go back to the defaults of its chart",
    "upgrade-step-first": "danger: an upgrade of the platform needs a step before it",
    "kernel-driver-changed": "danger: the GPU Operator exchanges NVIDIA's kernel driver",
    "package-changed": "danger: the project pins another release of a package that decides what is compiled",
    # new projects
    "project-name": "the name of a new project is none that Pulumi takes",
    "files-differ": "a file of a new project is there already with other content",
    "folder-not-usable": "a new project cannot be written where it was asked for",
    "fleet-without-gpus": "a new project was asked for on a fleet without whole GPUs",
    # comments on forges
    "forge-settings": "repository, number, token or address of a forge is missing or malformed",
    "comment-without-marker": "a file to post is no review: the hidden marker is not its first line",
    "comment-too-long": "a file to post is longer than the forge takes in one comment",
    "forge-unauthorized": "a forge does not accept the token",
    "forge-forbidden": "the token may not read or write comments",
    "forge-not-found": "there is no such pull request, or none that the token may see",
    "forge-refused": "a forge refuses a comment as it is",
    "forge-rate-limited": "a forge asks to wait longer than the command may",
    "forge-unavailable": "a forge does not answer, or answers with errors of its own",
    "forge-answer": "something answers that is not the API of a forge",
    # live clusters
    "kubeconfig-unreadable": "a kubeconfig is missing, malformed, or says too little",
    "context-not-known": "a kubeconfig has no context of that name, or no current one",
    "cluster-credentials": "the user of a kubeconfig has no credentials that can be used",
    "cluster-unreachable": "an API server does not answer, or shows a certificate of somebody else",
    "cluster-unauthorized": "an API server does not accept the credentials",
    "cluster-forbidden": "a kind of objects may not be listed",
    "cluster-answer": "an API server fails, or something else answers in its place",
    "kind-not-served": "a cluster serves a kind in none of the versions that are read",
    "snapshot-too-large": "a snapshot is larger than what is read back",
    "dra-not-served": "a cluster does not serve resource.k8s.io",
    "driver-missing": "no node of a cluster publishes devices of a driver",
    "class-missing": "no device class selects the devices of a driver",
    "class-without-devices": "a device class is for a driver that publishes nothing",
    "pool-incomplete": "a pool of devices lacks slices, so none of its devices is given out",
    "pool-invalid": "a pool of devices contradicts itself, so none of its devices is given out",
    "slice-node-gone": "a slice is for a node that is not there",
    "driver-not-on-node": "a node with GPUs publishes no devices",
    "plugin-not-on-node": "the driver's pods cannot run on a node with GPUs: a taint, a label",
    "plugin-not-ready": "pods of the driver do not run",
    "claim-reserved": "a claim is held for a pod that is gone",
    "claim-device-gone": "a claim has a device that no slice has",
    "device-taint": "devices have a taint, so pods do not get them or are evicted",
    "mig-state": "the MIG manager has not done what a node's label asks for",
    "mig-not-published": "claims ask for MIG devices, and there are none",
    "claim-not-made": "the claim that a pod's template asks for is not made yet",
    "claim-deleting": "a claim that a pod needs is being deleted",
    "claim-unused": "no pod that waits uses a claim, so nobody asks for its devices",
    "pod-gated": "the scheduler does not look at a pod while it has scheduling gates",
    "scheduler-says": "what the scheduler or the kubelet itself says about a pod",
    "subject-not-known": "an explanation is asked for of an object that is not there",
    "stale-definition": "a CustomResourceDefinition of the driver is left over, or too old for it",
    "gate-off": "a feature gate of the cluster is off that something in it needs",
    # fleets and placement
    "fleet-unknown": "a fleet is named that is not known",
    "fleet-count": "a fleet has a count that is not a number of nodes",
    "fleet-option": "an option of a fleet is unknown, malformed, or not possible with the hardware, the release or the others",
    "fleet-too-large": "a fleet has more nodes than are supported",
    "fleet-unreadable": "a fleet file cannot be read or holds no Node",
    "fleet-object": "an object in a fleet file is malformed, of a version that is not read, or there twice",
    "class-not-known": "a device class is neither in the input nor in the fleet, and no known driver ships it",
    "claim-not-known": "a claim or claim template that a pod names is not in the input",
    "value-not-known": "a value that decides the placement is only known after `pulumi up`",
    "not-modelled": "something decides the placement that is not modelled yet",
    "object-malformed": "an object cannot be read as what its kind says",
    "no-device-matches": "no device on a node passes the selectors of a request",
    "too-few-devices": "a node has too few devices that match",
    "capacity-too-small": "devices match but have less capacity than a request takes of each",
    "counters-exceeded": "devices match but the counters that they share do not allow so many of them",
    "constraint-not-met": "no choice of devices on a node meets the constraints of a claim",
    "devices-in-use": "enough devices of a node match, but pods that run already hold too many of them",
    "device-tainted": "devices match but have taints that the request does not tolerate",
    "all-devices-blocked": "a request for all devices cannot have all of them",
    "allocation-aborted": "the scheduler gives up on the pod with an error, on every node",
    "node-refuses-pod": "node name, selector, affinity, taints or cordon keep a pod off a node",
    "other-pods-in-the-way": "affinity, anti-affinity, topology spread or host ports of pods keep a pod off a node",
    "quota-refuses": "a ResourceQuota lets fewer pods or claims be made than a workload needs",
    "node-too-small": "a node lacks cpu, memory, pod slots or another resource for a pod",
    "claim-elsewhere": "a claim that the pod shares is allocated on other nodes",
    "too-few-nodes": "some pods of a workload fit, but not all of them",
    "scale-number": "no number of pods that a workload can be given",
    "scale-unknown": "no workload with a number of pods is called so",
    "search-stopped": "the search for devices was stopped at its limit",
    "what-if-device": "no device of the fleet is called so",
    "what-if-node": "no node of the fleet is called so",
    # the node plugin
    "invalid-claim-uid": "a request names a claim by something that is no UID",
    "plugin-folder-not-usable": "the node plugin cannot read or write one of its folders",
    "checkpoint-unreadable": "a file of the checkpoint is damaged, and was set aside",
    "checkpoint-newer": "a file of the checkpoint was written by a newer release, and was set aside",
    "claim-not-restored": "a claim was prepared, and which devices it has is not known any more",
    "claim-prepared-otherwise": "a claim is prepared with other devices than it is allocated now",
    "device-held": "a device is prepared for another claim",
    "cdi-refused": "container runtimes would refuse the CDI spec of a claim",
}
"""Every stable code with its one-line meaning."""
