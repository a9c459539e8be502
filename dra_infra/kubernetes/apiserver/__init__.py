"""What an API server does with an object: defaulting, dropping of gated fields, validation and admission.

`policies`, the ValidatingAdmissionPolicies, is a public package too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_infra.kubernetes.front_door import find_homes, load_late

if TYPE_CHECKING:
    from dra_infra.kubernetes.apiserver.admission import CLAIMS_KEY as CLAIMS_KEY
    from dra_infra.kubernetes.apiserver.admission import DEVICES as DEVICES
    from dra_infra.kubernetes.apiserver.admission import Charges as Charges
    from dra_infra.kubernetes.apiserver.admission import PodAdmission as PodAdmission
    from dra_infra.kubernetes.apiserver.admission import Quotas as Quotas
    from dra_infra.kubernetes.apiserver.admission import Use as Use
    from dra_infra.kubernetes.apiserver.admission import claim_devices as claim_devices
    from dra_infra.kubernetes.apiserver.admission import count_claim as count_claim
    from dra_infra.kubernetes.apiserver.admission import count_extended_claim as count_extended_claim
    from dra_infra.kubernetes.apiserver.admission import count_object as count_object
    from dra_infra.kubernetes.apiserver.admission import count_pod as count_pod
    from dra_infra.kubernetes.apiserver.admission import counts_claims as counts_claims
    from dra_infra.kubernetes.apiserver.admission import counts_class as counts_class
    from dra_infra.kubernetes.apiserver.admission import counts_devices as counts_devices
    from dra_infra.kubernetes.apiserver.admission import counts_whole as counts_whole
    from dra_infra.kubernetes.apiserver.admission import describe_refusal as describe_refusal
    from dra_infra.kubernetes.apiserver.admission import is_extended_key as is_extended_key
    from dra_infra.kubernetes.apiserver.admission import is_quota_key as is_quota_key
    from dra_infra.kubernetes.apiserver.admission import quota_keys as quota_keys
    from dra_infra.kubernetes.apiserver.admission import read_hard as read_hard
    from dra_infra.kubernetes.apiserver.claims import check_toleration as check_toleration
    from dra_infra.kubernetes.apiserver.configurations import environment_of as environment_of
    from dra_infra.kubernetes.apiserver.field_errors import FieldError as FieldError
    from dra_infra.kubernetes.apiserver.field_errors import Judged as Judged
    from dra_infra.kubernetes.apiserver.metadata import MAX_ANNOTATIONS as MAX_ANNOTATIONS
    from dra_infra.kubernetes.apiserver.pod_claims import check_pod_claims as check_pod_claims
    from dra_infra.kubernetes.apiserver.rules import RULES as RULES
    from dra_infra.kubernetes.apiserver.verdict import ADMIN_LABEL as ADMIN_LABEL
    from dra_infra.kubernetes.apiserver.verdict import Verdict as Verdict
    from dra_infra.kubernetes.apiserver.verdict import judge as judge

# The source: a name is public when it stands here, behind its module.
_HOMES = find_homes(
    {
        "admission": (
            "CLAIMS_KEY",
            "Charges",
            "DEVICES",
            "PodAdmission",
            "Quotas",
            "Use",
            "claim_devices",
            "count_claim",
            "count_extended_claim",
            "count_object",
            "count_pod",
            "counts_claims",
            "counts_class",
            "counts_devices",
            "counts_whole",
            "describe_refusal",
            "is_extended_key",
            "is_quota_key",
            "quota_keys",
            "read_hard",
        ),
        "claims": ("check_toleration",),
        "configurations": ("environment_of",),
        "field_errors": (
            "FieldError",
            "Judged",
        ),
        "metadata": ("MAX_ANNOTATIONS",),
        "pod_claims": ("check_pod_claims",),
        "rules": ("RULES",),
        "verdict": (
            "ADMIN_LABEL",
            "Verdict",
            "judge",
        ),
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the source)

if not TYPE_CHECKING:
    # Type checkers would take any name for one that there is.
    __getattr__, __dir__ = load_late(__name__, _HOMES)
