from __future__ import annotations

import pytest

from dra_infra.model.resource_quota import QuotaKey, QuotaSubject, class_key


@pytest.mark.parametrize(
    ("text", "subject", "name"),
    [
        ("count/resourceclaims.resource.k8s.io", QuotaSubject.OBJECTS, "resourceclaims.resource.k8s.io"),
        ("h100.deviceclass.resource.k8s.io/devices", QuotaSubject.CLASS_DEVICES, "h100"),
        ("a.b.deviceclass.resource.k8s.io/devices", QuotaSubject.CLASS_DEVICES, "a.b"),
        (
            "requests.deviceclass.resource.kubernetes.io/h100",
            QuotaSubject.CLASS_EXTENDED_RESOURCE,
            "h100",
        ),
        ("requests.nvidia.com/gpu", QuotaSubject.EXTENDED_RESOURCE, "nvidia.com/gpu"),
        ("requests.cpu", QuotaSubject.OTHER, "requests.cpu"),
        ("requests.kubernetes.io/batteries", QuotaSubject.OTHER, "requests.kubernetes.io/batteries"),
        ("limits.nvidia.com/gpu", QuotaSubject.OTHER, "limits.nvidia.com/gpu"),
        ("pods", QuotaSubject.OTHER, "pods"),
        (".deviceclass.resource.k8s.io/devices", QuotaSubject.OTHER, ".deviceclass.resource.k8s.io/devices"),
        ("", QuotaSubject.OTHER, ""),
    ],
)
def test_a_key_says_what_it_limits(text, subject, name):
    key = QuotaKey.parse(text)
    assert (key.subject, key.name, str(key)) == (subject, name, text)


def test_the_key_of_a_class_is_read_back():
    assert QuotaKey.parse(str(class_key("h100"))) == class_key("h100")
