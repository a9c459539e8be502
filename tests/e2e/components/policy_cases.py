"""Policies that use what admission policies have, each with objects, for the real servers and for us."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Manifest = dict[str, Any]
LABEL: Final = "case"
SPACES: Final = {"vision": {"tier": "gold"}, "speech": {"tier": "iron"}, "plain": {}, "limited": {}}
"""Namespaces with their labels."""

LIMITS: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "limits", "namespace": "limited"},
    "spec": {
        "limits": [{"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"memory": "512Mi"}}]
    },
}

SETTINGS: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "vision"},
    "data": {"most": "4", "classes": "h100,a100"},
}


class Case(NamedTuple):
    """A policy, and what it is asked about.

    Args:
        spec: Spec of the policy, but for what is the same in all.
        binding: Spec of its binding, but for the name of the policy.
        objects: Objects, each with what we say: `pass`, `deny`, `warn` or `undecided`; nothing where that differs by minor.
    """

    spec: Manifest
    binding: Manifest
    objects: list[tuple[Manifest, str]]


def claim(*requests: Manifest, namespace: str = "vision", version: str = "v1", **metadata: Any) -> Manifest:
    devices = {"requests": list(requests)} if requests else {}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": namespace, **metadata},
        "spec": {"devices": devices} if devices else {},
    }


def exactly(name: str = "h100", **more: Any) -> Manifest:
    return {"name": "a", "exactly": {"deviceClassName": name, **more}}


def flat(name: str = "h100", **more: Any) -> Manifest:
    return {"name": "a", "deviceClassName": name, **more}


def device_class(name: str, expression: str) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def space(name: str, labels: dict[str, str] | None = None) -> Manifest:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def priority_class(name: str) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1,
    }


def pod(namespace: str = "vision", **container: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"containers": [{"name": "a", "image": "i", **container}]},
    }


def with_spec(manifest: Manifest, **more: Any) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], **more}}


def rules(
    *resources: str, group: str = "resource.k8s.io", versions: tuple[str, ...] = ("v1",), **more: Any
) -> Manifest:
    rule = {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": ["CREATE"],
        "resources": list(resources),
    }
    return {"resourceRules": [{**rule, **more.pop("rule", {})}], **more}


def validation(expression: str, message: str = "", spoken: str = "") -> Manifest:
    found = {"expression": expression, "message": message, "messageExpression": spoken}
    return {name: text for name, text in found.items() if text}


CLAIMS: Final = rules("resourceclaims")
DENY: Final[Manifest] = {"validationActions": ["Deny"]}
ONE: Final = claim(exactly())
TWO: Final = claim(exactly(count=2))

CASES: Final[dict[str, Case]] = {
    "no message": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("  object.spec.devices.requests.all(r, r.exactly.count < 2) ")],
        },
        DENY,
        [(ONE, "pass"), (TWO, "deny")],
    ),
    "a message": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("object.spec.devices.requests.all(r, r.exactly.count < 2)", " one! ")],
        },
        DENY,
        [(ONE, "pass"), (TWO, "deny")],
    ),
    "a message of many lines": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("object.metadata.name != 'c'", "written", "'two\\nlines'")],
        },
        DENY,
        [(ONE, "deny")],
    ),
    "a blank message": Case(
        {"matchConstraints": CLAIMS, "validations": [validation("object.metadata.name != 'c'", "", "' '")]},
        DENY,
        [(ONE, "deny")],
    ),
    "a long message": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "object.metadata.name != 'c'",
                    "short",
                    "'x'.replace('x', 'yyyyyyyyyy' + object.metadata.annotations['text'])",
                )
            ],
        },
        DENY,
        [
            (claim(exactly(), annotations={"text": "z" * 5110}), "deny"),
            (claim(exactly(), annotations={"text": "z" * 5111}), "deny"),
        ],
    ),
    "a message that fails": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "object.metadata.name != 'c'", "fallen back", "string(object.metadata.labels['no'])"
                )
            ],
        },
        DENY,
        [(ONE, "deny")],
    ),
    "several validations": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation("object.spec.devices.requests.all(r, r.exactly.count < 3)", "first"),
                validation(
                    "object.spec.devices.requests.all(r, r.exactly.deviceClassName == 'h100')", "second"
                ),
            ],
        },
        DENY,
        [(ONE, "pass"), (claim(exactly("a100")), "deny"), (claim(exactly("a100", count=5)), "deny")],
    ),
    "an error": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("object.spec.devices.requests[0].exactly.selectors.size() > 0")],
        },
        DENY,
        [
            (ONE, "deny"),
            (claim(exactly(selectors=[{"cel": {"expression": "true"}}])), "pass"),
            (claim(), "deny"),
        ],
    ),
    "an error that is ignored": Case(
        {
            "failurePolicy": "Ignore",
            "matchConstraints": CLAIMS,
            "validations": [validation("object.spec.devices.requests[0].exactly.selectors.size() > 1")],
        },
        DENY,
        [(ONE, "pass"), (claim(exactly(selectors=[{"cel": {"expression": "true"}}])), "deny")],
    ),
    "a warning": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("object.spec.devices.requests.all(r, r.exactly.count < 2)", "told")],
        },
        {"validationActions": ["Warn", "Audit"]},
        [(ONE, "pass"), (TWO, "warn")],
    ),
    "an audit": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("object.spec.devices.requests.all(r, r.exactly.count < 2)", "told")],
        },
        {"validationActions": ["Audit"]},
        [(ONE, "pass"), (TWO, "pass")],
    ),
    "an audit annotation": Case(
        {
            "matchConstraints": CLAIMS,
            "auditAnnotations": [
                {"key": "k", "valueExpression": "string(object.metadata.annotations['text'])"}
            ],
        },
        {"validationActions": ["Audit"]},
        [(ONE, "deny"), (claim(exactly(), annotations={"text": "t"}), "pass")],
    ),
    "variables": Case(
        {
            "matchConstraints": CLAIMS,
            "variables": [
                {"name": "requests", "expression": "object.spec.devices.?requests.orValue([])"},
                {"name": "counts", "expression": "variables.requests.map(r, r.exactly.count)"},
                {"name": "broken", "expression": "object.spec.nope"},
            ],
            "validations": [
                validation("variables.counts.sum() < 4", "", "'asks for ' + string(variables.counts.sum())"),
                validation("variables.requests.size() < 3 || variables.broken == 'x'"),
            ],
        },
        DENY,
        [
            (claim(), "deny"),
            (claim(exactly(count=3)), "pass"),
            (claim(exactly(count=4)), "deny"),
            (claim(*({"name": n, "exactly": {"deviceClassName": "h100"}} for n in "abc")), "deny"),
        ],
    ),
    "conditions": Case(
        {
            "matchConstraints": CLAIMS,
            "matchConditions": [
                {"name": "named", "expression": "request.?name.orValue('') != 'free'"},
                {"name": "labelled", "expression": "object.metadata.labels['open'] != 'yes'"},
                {"name": "no-namespace", "expression": "namespaceObject == null"},
            ],
            "validations": [
                validation("object.spec.devices.requests.all(r, r.exactly.count < 2)", "too many")
            ],
        },
        DENY,
        [
            (claim(exactly(count=2), name="free", labels={"open": "no"}), "pass"),
            (claim(exactly(count=2), labels={"open": "yes"}), "pass"),
            (claim(exactly(count=2), labels={"open": "no"}), "deny"),
            (claim(exactly(), labels={"open": "no"}), "pass"),
            (ONE, "deny"),
        ],
    ),
    "conditions that fail twice": Case(
        {
            "matchConstraints": CLAIMS,
            "matchConditions": [
                {"name": "a", "expression": "object.metadata.annotations['a'] == 'x'"},
                {"name": "b", "expression": "object.metadata.annotations['b'] == 'x'"},
            ],
            "validations": [validation("false", "never")],
        },
        DENY,
        [
            (ONE, "deny"),
            (claim(exactly(), annotations={"b": "y"}), "pass"),
            (claim(exactly(), annotations={"b": "x"}), "deny"),
        ],
    ),
    "a namespace selector": Case(
        {
            "matchConstraints": {
                **CLAIMS,
                "namespaceSelector": {
                    "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]
                },
            },
            "validations": [validation("false", "never")],
        },
        DENY,
        [
            (ONE, "pass"),
            (claim(exactly(), namespace="speech"), "deny"),
            (claim(exactly(), namespace="plain"), "deny"),
        ],
    ),
    "a namespace by its name": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("false", "never")],
        },
        {
            **DENY,
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "speech"}}
            },
        },
        [(ONE, "pass"), (claim(exactly(), namespace="speech"), "deny")],
    ),
    "an excluded rule": Case(
        {
            "matchConstraints": {
                **rules("*", versions=("*",), group="*"),
                "excludeResourceRules": rules("resourceclaims", rule={"resourceNames": ["free"]})[
                    "resourceRules"
                ],
            },
            "validations": [
                validation(
                    "request.kind.kind != 'ResourceClaim'",
                    "",
                    "request.resource.resource + ' in ' + request.resource.version",
                )
            ],
        },
        DENY,
        [
            (claim(exactly(), name="free"), "pass"),
            (ONE, "deny"),
            (claim(exactly(), version="v1beta2"), "deny"),
            (claim(flat(), version="v1beta1"), "deny"),
        ],
    ),
    "an exact version": Case(
        {
            "matchConstraints": {**CLAIMS, "matchPolicy": "Exact"},
            "validations": [validation("false", "never")],
        },
        DENY,
        [
            (ONE, "deny"),
            (claim(exactly(), version="v1beta2"), "pass"),
            (claim(flat(), version="v1beta1"), "pass"),
        ],
    ),
    "an old version": Case(
        {
            "matchConstraints": rules("resourceclaims", versions=("v1beta1",)),
            "validations": [
                validation(
                    "object.spec.devices.requests.all(r, r.deviceClassName == '' || r.count < 2)",
                    "",
                    "object.apiVersion + ' ' + request.resource.version + ' ' + request.requestResource.version",
                ),
                validation("object.spec.devices.requests.all(r, !has(r.exactly))"),
            ],
        },
        DENY,
        [
            (ONE, "pass"),
            (TWO, "deny"),
            (claim(flat(count=2), version="v1beta1"), "deny"),
            (
                claim(
                    {"name": "a", "firstAvailable": [{"name": "x", "deviceClassName": "h100", "count": 3}]}
                ),
                "pass",
            ),
        ],
    ),
    "a rule of a scope before one of all": Case(
        {
            "matchConstraints": {
                "resourceRules": [
                    each
                    for scope in ("Namespaced", "*")
                    for each in rules("priorityclasses", group="scheduling.k8s.io", rule={"scope": scope})[
                        "resourceRules"
                    ]
                ]
            },
            "validations": [validation("object.metadata.name != 'high'", "never")],
        },
        DENY,
        [(priority_class("low"), "pass"), (priority_class("high"), "deny")],
    ),
    "a macro over a part": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [validation("object.?metadata.optMap(m, m.name != 'c').orValue(true)", "never")],
        },
        DENY,
        [(claim(exactly(), name="d"), "pass"), (ONE, "deny")],
    ),
    "what is left out": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "has(object.spec.devices) && !has(object.spec.devices.constraints) && object.spec.devices.requests.all(r,"
                    " r.exactly.allocationMode == 'ExactCount' ? has(r.exactly.count) : !has(r.exactly.count))"
                    " && !has(object.spec.devices.requests[0].firstAvailable)"
                ),
                validation(
                    "object.spec.devices.requests.all(r, r.exactly.?tolerations.orValue([]).all(t, t.operator == 'Equal'))"
                ),
                validation("object.spec.devices.requests.size() < 2"),
            ],
        },
        DENY,
        [
            (ONE, "pass"),
            (claim(exactly(allocationMode="All")), "pass"),
            (claim(exactly(tolerations=[{"key": "a", "value": "b", "effect": "NoSchedule"}])), "pass"),
            # A minor whose gate is off has no tolerations to look at.
            (claim(exactly(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}])), ""),
            (claim(exactly(), {**exactly(), "name": "b"}), "deny"),
        ],
    ),
    "parameters of a config": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "object.spec.devices.config[0].opaque.parameters.n == 1",
                    "",
                    "string(object.spec.devices.config[0].opaque.parameters.n)",
                )
            ],
        },
        DENY,
        [
            (
                {
                    **ONE,
                    "spec": {
                        "devices": {
                            "requests": [exactly()],
                            "config": [
                                {
                                    "opaque": {
                                        "driver": "d.example.com",
                                        "parameters": {"kind": "X", "n": number},
                                    }
                                }
                            ],
                        }
                    },
                },
                "pass" if number == 1 else "deny",
            )
            for number in (1, 1.0, 2.5, "1", -3, 1e3)
        ],
    ),
    "params": Case(
        {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "object.spec.devices.requests.all(r, r.exactly.count <= int(params.data.most))",
                    "",
                    "'at most ' + params.data.most",
                ),
                validation("!has(params.data.nothing)"),
            ],
        },
        {**DENY, "paramRef": {"name": "settings", "namespace": "vision", "parameterNotFoundAction": "Deny"}},
        [(ONE, "pass"), (claim(exactly(count=5), namespace="speech"), "deny")],
    ),
    "params of a selector": Case(
        {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": CLAIMS,
            "validations": [validation("has(params.data)")],
        },
        {**DENY, "paramRef": {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow"}},
        [(ONE, "undecided")],
    ),
    "the namespace": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "namespaceObject.metadata.labels[?'tier'].orValue('') == 'gold'",
                    "",
                    "namespaceObject.metadata.name + ' of ' + request.namespace",
                )
            ],
        },
        DENY,
        [
            (ONE, "pass"),
            (claim(exactly(), namespace="speech"), "deny"),
            (claim(exactly(), namespace="plain"), "deny"),
        ],
    ),
    "what the server writes": Case(
        {"matchConstraints": CLAIMS, "validations": [validation("object.metadata.uid != ''")]},
        DENY,
        [(ONE, "undecided")],
    ),
    "the authorizer": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation("authorizer.group('').resource('pods').namespace('vision').check('get').allowed()")
            ],
        },
        DENY,
        [(ONE, "undecided")],
    ),
    "the user": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "request.userInfo.username == 'alice' && 'system:authenticated' in request.userInfo.groups",
                    "",
                    "request.userInfo.username + ' of ' + request.userInfo.groups.join(', ')",
                )
            ],
        },
        DENY,
        [(ONE, "deny")],
    ),
    "classes": Case(
        {
            "matchConstraints": rules("deviceclasses", rule={"scope": "Cluster"}),
            "validations": [
                validation(
                    "object.spec.selectors.exists(s, s.cel.expression.contains('device.driver')) && !has(request.namespace) && namespaceObject == null",
                    "",
                    "object.metadata.name + ' is for no driver'",
                )
            ],
        },
        DENY,
        [
            (device_class("a", "device.driver == 'x.example.com'"), "pass"),
            (device_class("b", "true"), "deny"),
        ],
    ),
    "namespaces": Case(
        {
            "matchConstraints": rules("namespaces", group=""),
            "validations": [
                validation(
                    "oldObject == null && request.namespace == object.metadata.name && object.metadata.labels['kubernetes.io/metadata.name'] != 'bad'",
                    "",
                    "'namespace ' + request.namespace + ' ' + request.name + ' ' + string(namespaceObject == null)",
                )
            ],
        },
        DENY,
        [(space("good"), "pass"), (space("bad"), "deny")],
    ),
    "pods": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [
                validation(
                    "object.spec.containers.all(c, !has(c.resources.requests) || quantity(c.resources.requests[?'cpu'].orValue('0')).compareTo(quantity('2')) <= 0)",
                    "",
                    "object.spec.containers.map(c, c.resources.requests.cpu).join(' ') + string(has(object.spec.initContainers))",
                )
            ],
        },
        DENY,
        [
            (pod(), "pass"),
            (pod(resources={"limits": {"cpu": "2000m"}}), "pass"),
            (pod(resources={"limits": {"cpu": "2001m"}}), "deny"),
            (pod(resources={"limits": {"cpu": 3}, "requests": {"cpu": "1500m"}}), "pass"),
            (pod(resources={"limits": {"cpu": "4000m"}}), "deny"),
        ],
    ),
    "volumes and nodes of pods": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [
                validation(
                    "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || v.hostPath.path == '/mnt')",
                    "",
                    "object.spec.?volumes.orValue([]).filter(v, has(v.hostPath)).map(v, v.hostPath.path).join(' ')",
                ),
                validation("object.spec.?nodeName.orValue('') == ''", "", "'not ' + object.spec.nodeName"),
            ],
        },
        DENY,
        [
            (pod(), "pass"),
            (with_spec(pod(), volumes=[{"name": "v"}]), "pass"),
            (with_spec(pod(), volumes=[{"name": "v", "hostPath": {"path": "/mnt"}}]), "pass"),
            (with_spec(pod(), volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "deny"),
            (with_spec(pod(), nodeName="n"), "deny"),
        ],
    ),
    "whether pods have volumes": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [validation("has(object.spec.volumes)")],
        },
        DENY,
        [(pod(), "undecided"), (with_spec(pod(), automountServiceAccountToken=False), "deny")],
    ),
    "what a limit range fills into pods": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [
                validation(
                    "object.spec.containers.all(c, has(c.resources.limits) && !has(c.resources.limits.cpu)"
                    " && c.resources.limits.memory == '1Gi' && c.resources.requests.memory == '512Mi')",
                    "",
                    "object.spec.containers.map(c, c.resources.?requests.?memory.orValue('none')).join(' ')",
                )
            ],
        },
        DENY,
        [
            (pod("limited"), "pass"),
            (pod("limited", resources={"limits": {"memory": "2Gi"}}), "deny"),
            (pod("limited", resources={"requests": {"memory": "256Mi"}}), "deny"),
            (pod("plain"), "deny"),
        ],
    ),
    "what is filled into pods": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [validation("object.spec.restartPolicy == 'Never'")],
        },
        DENY,
        [(pod(), "deny"), (with_spec(pod(), restartPolicy="Never"), "pass")],
    ),
    "tolerations that every pod gets": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [
                validation("object.spec.tolerations.size() == 2"),
                validation(
                    "object.spec.tolerations.all(t, has(t.tolerationSeconds) && t.tolerationSeconds == 300)"
                ),
            ],
        },
        DENY,
        [
            (pod(), "pass"),
            (with_spec(pod(), tolerations=[]), "pass"),
            (with_spec(pod(), tolerations=[{"operator": "Exists"}]), "deny"),
            (with_spec(pod(), tolerations=[{"key": "a", "operator": "Exists"}]), "deny"),
        ],
    ),
    "security contexts of pods": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [
                validation(
                    "object.spec.securityContext != null && object.spec.securityContext.?runAsNonRoot.orValue(false)"
                )
            ],
        },
        DENY,
        [
            (pod(), "deny"),
            (with_spec(pod(), securityContext={"runAsNonRoot": False}), "deny"),
            (with_spec(pod(), securityContext={"runAsNonRoot": True}), "pass"),
        ],
    ),
    "fields of pods that are left out": Case(
        {
            "matchConstraints": rules("pods", group=""),
            "validations": [
                validation("!has(object.spec.hostNetwork) && !has(object.spec.nodeSelector)"),
                validation(
                    "object.spec.schedulerName == 'default-scheduler' && object.spec.enableServiceLinks"
                ),
                validation(
                    "object.spec.containers.all(c, c.imagePullPolicy == 'Always' && has(c.resources))"
                ),
            ],
        },
        DENY,
        [
            (pod(), "pass"),
            (with_spec(pod(), hostNetwork=False, nodeSelector={}), "pass"),
            (with_spec(pod(), hostNetwork=True), "deny"),
            (with_spec(pod(), schedulerName="other"), "deny"),
        ],
    ),
    "too costly": Case(
        {
            "matchConstraints": CLAIMS,
            "validations": [
                validation(
                    "['a','b','c','d','e','f','g','h'].all(a, [1,2,3,4,5,6,7,8].all(b, [1,2,3,4,5,6,7,8].all(c,"
                    " [1,2,3,4,5,6,7,8].all(d, [1,2,3,4,5,6,7,8].all(e, [1,2,3,4,5,6,7,8].all(f, object.metadata.name == 'c'))))))"
                )
            ],
        },
        DENY,
        [(ONE, "deny")],
    ),
}
