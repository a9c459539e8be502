"""What an API server does with an object: defaulting, dropping of gated fields, validation and admission.

`policies`, the ValidatingAdmissionPolicies, is a public package too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_infra.kubernetes.front_door import find_homes, load_late

if TYPE_CHECKING:
    from dra_infra.kubernetes.apiserver.admission import Charges as Charges
    from dra_infra.kubernetes.apiserver.admission import PodAdmission as PodAdmission
    from dra_infra.kubernetes.apiserver.admission import Quotas as Quotas
    from dra_infra.kubernetes.apiserver.admission import Use as Use
    from dra_infra.kubernetes.apiserver.admission import claim_devices as claim_devices
    from dra_infra.kubernetes.apiserver.admission import count_claim as count_claim
    from dra_infra.kubernetes.apiserver.admission import count_extended_claim as count_extended_claim
    from dra_infra.kubernetes.apiserver.admission import count_object as count_object
    from dra_infra.kubernetes.apiserver.admission import count_pod as count_pod
    from dra_infra.kubernetes.apiserver.admission import (
        counts_by_extended_resource as counts_by_extended_resource,
    )
    from dra_infra.kubernetes.apiserver.admission import describe_refusal as describe_refusal
    from dra_infra.kubernetes.apiserver.admission import read_hard as read_hard
    from dra_infra.kubernetes.apiserver.claims import check_toleration as check_toleration
    from dra_infra.kubernetes.apiserver.configurations import environment_of as environment_of
    from dra_infra.kubernetes.apiserver.core_fields import FieldFault as FieldFault
    from dra_infra.kubernetes.apiserver.core_fields import find_faults as find_faults
    from dra_infra.kubernetes.apiserver.core_fields import is_core_kind as is_core_kind
    from dra_infra.kubernetes.apiserver.core_fields import read_fields as read_fields
    from dra_infra.kubernetes.apiserver.core_schemas import CoreSchemas as CoreSchemas
    from dra_infra.kubernetes.apiserver.core_schemas import FieldType as FieldType
    from dra_infra.kubernetes.apiserver.core_schemas import read_core_schemas as read_core_schemas
    from dra_infra.kubernetes.apiserver.field_errors import FieldError as FieldError
    from dra_infra.kubernetes.apiserver.field_errors import Judged as Judged
    from dra_infra.kubernetes.apiserver.metadata import MAX_ANNOTATIONS as MAX_ANNOTATIONS
    from dra_infra.kubernetes.apiserver.pod_claims import check_pod_claims as check_pod_claims
    from dra_infra.kubernetes.apiserver.quota_keys import QuotaKey as QuotaKey
    from dra_infra.kubernetes.apiserver.quota_keys import is_extended_resource as is_extended_resource
    from dra_infra.kubernetes.apiserver.rules import RULES as RULES
    from dra_infra.kubernetes.apiserver.verdict import ADMIN_LABEL as ADMIN_LABEL
    from dra_infra.kubernetes.apiserver.verdict import Verdict as Verdict
    from dra_infra.kubernetes.apiserver.verdict import judge as judge

# The source: a name is public when it stands here, behind its module.
_HOMES = find_homes(
    {
        "admission": (
            "Charges",
            "PodAdmission",
            "Quotas",
            "Use",
            "claim_devices",
            "count_claim",
            "count_extended_claim",
            "count_object",
            "count_pod",
            "counts_by_extended_resource",
            "describe_refusal",
            "read_hard",
        ),
        "claims": ("check_toleration",),
        "configurations": ("environment_of",),
        "core_fields": ("FieldFault", "find_faults", "is_core_kind", "read_fields"),
        "core_schemas": ("CoreSchemas", "FieldType", "read_core_schemas"),
        "field_errors": (
            "FieldError",
            "Judged",
        ),
        "metadata": ("MAX_ANNOTATIONS",),
        "pod_claims": ("check_pod_claims",),
        "quota_keys": ("QuotaKey", "is_extended_resource"),
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
