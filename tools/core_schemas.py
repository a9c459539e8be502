"""Write the fields of Kubernetes' own kinds from the real API servers: ``python -m tools.core_schemas``.

Each server describes its kinds at /openapi/v3, all versions and gates on. What decoding and the checks of single fields need
is kept, one gzip file for each minor: 15 KiB instead of 9 MB. The description calls fields required that servers fill in or never
look at. So the servers are asked about the objects of `core_samples.yaml` without each required field, and with another word for
each that is one of a list. What they take somewhere, and what no sample has, is kept as a field like any other.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from dra_infra.kubernetes.api import GROUP, SUPPORTED_MINORS
from dra_infra.kubernetes.api.decoding import KINDS
from dra_infra.kubernetes.apiserver.core_schemas import CHOICE, DATA, PREFIXES, REQUIRED, SET, file_name
from tools.cluster.api_server import api_server
from tools.cluster.control_plane import ControlPlane
from tools.errors import ToolError

Schema = Mapping[str, Any]
Manifest = dict[str, Any]

SAMPLES: Final = Path(__file__).with_name("core_samples.yaml")

EVERYTHING: Final = {"AllAlpha": True, "AllBeta": True}
"""Gates under which a server describes every kind that it has."""

ALL_APIS: Final = ("api/all",)

_SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "micro-time",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
}
"""Types with a decoder of their own."""

_SCALARS: Final = {
    ("string", ""): "string",
    ("string", "byte"): "byte",
    ("boolean", ""): "boolean",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "double",
}


def describe(plane: ControlPlane) -> dict[str, Any]:
    """Return what a running server says of the fields of its kinds, as `read_core_schemas` reads it."""
    definitions: dict[str, Schema] = {}
    kinds: dict[str, dict[str, str]] = {}
    with plane.connection.client() as client:
        for entry in client.get("/openapi/v3").json()["paths"].values():
            document = client.get(entry["serverRelativeURL"]).json()
            definitions |= document.get("components", {}).get("schemas", {})
            for api_version, kind, name in _created(document):
                kinds.setdefault(api_version, {})[kind] = name
    types: dict[str, dict[str, str]] = {}
    waiting = {name for names in kinds.values() for name in names.values()}
    while waiting:
        name = waiting.pop()
        if _short(name) in types:
            continue
        definition = definitions[name]
        required = definition.get("required", ())
        fields: dict[str, str] = {}
        for field, schema in sorted(definition.get("properties", {}).items()):
            text, below = _type(schema, definitions)
            waiting |= below
            fields[field] = f"{text}{REQUIRED}" if field in required else text
        types[_short(name)] = fields
    return {
        "kinds": {
            api_version: {kind: _short(name) for kind, name in sorted(names.items())}
            for api_version, names in sorted(kinds.items())
        },
        "types": dict(sorted(types.items())),
    }


def measure(plane: ControlPlane, described: Mapping[str, Any]) -> dict[str, Any]:
    """Return *described* with only those required fields and lists of words to which the server holds the samples.

    Raises:
        ToolError: When the server refuses a sample as it is.
    """
    outcomes: dict[tuple[str, str, str], bool] = {}
    with plane.connection.client() as client:
        for sample in yaml.safe_load_all(SAMPLES.read_text()):
            path = _collection(client, sample)
            if answer := _refusal(client, path, sample):
                raise ToolError(f"{sample['kind']} of core_samples.yaml is refused: {answer}")
            type_name = described["kinds"][sample["apiVersion"]][sample["kind"]]
            for holder, holder_type in _holders(described["types"], type_name, sample):
                for field, mark, value in _changes(described["types"][holder_type], holder):
                    written = holder[field]
                    holder[field] = value
                    key = (holder_type, field, mark)
                    outcomes[key] = outcomes.get(key, True) and bool(_refusal(client, path, sample))
                    holder[field] = written
    return {
        **described,
        "types": {
            type_name: {field: _kept(outcomes, type_name, field, text) for field, text in fields.items()}
            for type_name, fields in described["types"].items()
        },
    }


def _kept(outcomes: Mapping[tuple[str, str, str], bool], type_name: str, field: str, text: str) -> str:
    bare = text.removesuffix(REQUIRED)
    if not outcomes.get((type_name, field, CHOICE)):
        bare = bare.partition(CHOICE)[0]
    is_required = text != text.removesuffix(REQUIRED) and outcomes.get((type_name, field, REQUIRED))
    return f"{bare}{REQUIRED}" if is_required else bare


def _changes(fields: Mapping[str, str], holder: Manifest) -> Iterator[tuple[str, str, Any]]:
    """Yield each change to try: a field, what is tried of it, and what is written in its place."""
    for field in list(holder):
        text = fields[field]
        if text.endswith(REQUIRED):
            yield field, REQUIRED, None
        if CHOICE in text:
            yield field, CHOICE, ["Unheard"] if text.startswith("[") else "Unheard"


def _holders(
    types: Mapping[str, Mapping[str, str]], type_name: str, value: Any
) -> Iterator[tuple[Manifest, str]]:
    if not isinstance(value, dict):
        return
    yield value, type_name
    for field, item in list(value.items()):
        text = types[type_name][field].removesuffix(REQUIRED)
        if "#" not in text:
            continue
        items = item if text.startswith("[") else item.values() if text.startswith("{}") else [item]
        for each in items:
            yield from _holders(types, text.rpartition("#")[2], each)


def _collection(client: httpx.Client, sample: Manifest) -> str:
    version = sample["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resources = client.get(root).json()["resources"]
    resource = next(each for each in resources if each["kind"] == sample["kind"] and "/" not in each["name"])
    return f"{root}{'/namespaces/default' if resource['namespaced'] else ''}/{resource['name']}"


def _refusal(client: httpx.Client, path: str, manifest: Manifest) -> str:
    """Return why the server does not create an object; empty where it would."""
    answer = client.post(path, params={"dryRun": "All", "fieldValidation": "Strict"}, json=manifest)
    return "" if answer.is_success else str(answer.json().get("message"))


def _created(document: Schema) -> Iterator[tuple[str, str, str]]:
    """Yield version, kind and definition of each kind whose objects are stored: a review is answered and forgotten."""
    for path, item in document.get("paths", {}).items():
        post = item.get("post")
        if post is None or "get" not in item or re.search(r"\{name\}/", path):
            continue
        kind = post.get("x-kubernetes-group-version-kind")
        if kind is None:
            continue
        api_version = "/".join(part for part in (kind["group"], kind["version"]) if part)
        if kind["group"] == GROUP and kind["kind"] in KINDS:
            continue
        body = next(iter(post["requestBody"]["content"].values()))["schema"]
        yield api_version, kind["kind"], _reference(body)


def _type(schema: Schema, definitions: Mapping[str, Schema]) -> tuple[str, set[str]]:
    """Return the text for a field's type, and the definitions that it names."""
    if name := _reference(schema):
        if name in _SPECIAL:
            return _SPECIAL[name], set()
        if "type" not in definitions[name]:
            return "any", set()
        return f"#{_short(name)}", {name}
    if schema["type"] == "array":
        text, below = _type(schema["items"], definitions)
        return f"[{_keys(schema, definitions)}]{text}", below
    if schema["type"] == "object":
        if "additionalProperties" not in schema:
            return "any", set()
        text, below = _type(schema["additionalProperties"], definitions)
        return f"{{}}{text}", below
    text = _SCALARS[schema["type"], schema.get("format", "")]
    choices = schema.get("enum", ())
    return CHOICE.join([text, *choices]), set()


def _keys(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """Return by what server-side apply tells the items of a list apart; empty for a list that it replaces as a whole."""
    if schema.get("x-kubernetes-list-type") == "set":
        return SET
    fields = definitions.get(_reference(schema["items"]), {}).get("properties", {})
    keys = schema.get("x-kubernetes-list-map-keys", ())
    defaults = {key: fields[key].get("default") for key in keys}
    return ",".join(f"{key}={defaults[key]}" if defaults[key] else key for key in keys)


def _reference(schema: Schema) -> str:
    reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", ())), "")
    return str(reference).rpartition("/")[2]


def _short(name: str) -> str:
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def to_bytes(described: Mapping[str, Any]) -> bytes:
    """Return the content of a minor's file, the same bytes each time."""
    text = json.dumps(described, separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def main() -> None:
    """Ask the servers of all minors, one after the other, and write their files."""
    folder = Path(__file__).parent.parent / "dra_infra" / "kubernetes" / "apiserver" / DATA
    for minor in SUPPORTED_MINORS:
        with api_server(minor, feature_gates=EVERYTHING, more_apis=ALL_APIS) as plane:
            content = to_bytes(measure(plane, describe(plane)))
        (folder / file_name(minor)).write_bytes(content)
        print(f"{file_name(minor)}: {len(content) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
