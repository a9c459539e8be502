"""Arguments of a component in Python, read from the properties of the schema.

The declared types say what each property is. What is one argument in Python, and several properties here, is joined: `count` and
`allDevices`, `select` and `match`. Problems of the component name arguments; `Reading.path_of` returns where these were written.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Required, get_args, get_origin, is_typeddict

import pulumi
from pydantic.alias_generators import to_camel

from dra_infra.components.platform_charts import InstalledClass
from dra_infra.errors import Problem
from dra_infra.provider.records import ONE_OF, RECORDS
from dra_infra.provider.selector_fields import selector_of
from dra_infra.provider.settled_inputs import Settled
from dra_infra.selectors.selector import Selector, cel
from dra_infra.specs.arguments import unknown_argument, wrong_type
from dra_infra.specs.requests import ClassRef

_CLASSES: Final = frozenset({"device_class", "device_classes", "classes", "extended_resources"})
"""Properties that name DeviceClasses: what takes a class of the same program is made after it."""

_BESIDE: Final[Mapping[str, str]] = {
    "all_devices": "count",
    "profile_counts": "profiles",
    "named_profiles": "profiles",
    "without_driver": "driver",
}
"""Properties that are another form of an argument, where that is declared too. Only one form may be given."""

_FIELDS_IN_PYTHON: Final = {
    ("DeviceConfig", "time_slicing"): "sharing",
    ("DeviceConfig", "mps"): "sharing",
    ("Constraint", "match_attribute"): "attribute",
    ("Constraint", "distinct_attribute"): "attribute",
}
"""Names that the fields of records have in Python, where they are others."""

_PART: Final = re.compile(r"\[[^\]]*\]|[A-Za-z_]\w*")


@dataclass(frozen=True)
class Reading:
    """What was read.

    Args:
        arguments: Of the component, by name.
        problems: With paths of the schema.
        places: Paths of problems that the component may report, each with the property that it is about.
        unread: Paths of the schema whose value is missing among the arguments, because of a problem.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def path_of(self, path: str) -> str:
        """Return the path in the schema of a problem that a component reports at *path*: `first_available[0].count`."""
        known = [each for each in self.places if path == each or path.startswith((f"{each}.", f"{each}["))]
        longest = max(known, key=len, default="")
        head = self.places.get(longest, "")
        rest = _PART.sub(_renamed, path.removeprefix(longest))
        return f"{head}{rest}" if longest else rest


def read(declared: Any, given: Mapping[str, Any]) -> Reading:
    """Return the arguments that stand in *given*.

    Args:
        declared: The arguments of a component, of `declarations`.
        given: Properties by their names in the schema, as `settle` returns them.
    """
    reading = Reading()
    reading.arguments.update(_fields(reading, declared, given, "", ""))
    return reading


def _fields(
    reading: Reading, declared: Any, given: Mapping[str, Any], python: str, schema: str
) -> dict[str, Any]:
    """Return the fields of an object by their names in Python; problems and places go into *reading*."""
    keys = {to_camel(key): key for key in declared.__annotations__}
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in keys:
            reading.problems.append(_placed(unknown_argument(name, keys), _below(schema, name)))
            continue
        key = keys[name]
        place = _below(schema, name)
        path = _path_in_python(declared.__name__, key, python)
        if declared.__name__ in ONE_OF:
            reading.places[path] = place
        fields[key] = _value(reading, declared.__annotations__[key], value, path, place, key)
    for key in sorted(declared.__required_keys__ - fields.keys()):
        message, hint = "is not given", f"write {to_camel(key)}"
        path = _below(schema, to_camel(key))
        reading.problems.append(Problem(path=path, code="missing-argument", message=message, hint=hint))
    return _joined(reading, declared, fields, python, schema)


def _value(reading: Reading, type_: Any, given: Any, python: str, schema: str, key: str) -> Any:
    inner, is_input = _input_of(type_)
    if is_input and isinstance(given, (Settled, pulumi.Output)) and get_origin(inner) is None:
        return _class_of(given) if key in _CLASSES else _output_of(given)
    if isinstance(given, Settled):
        given = given.value
    if isinstance(given, pulumi.Output):
        # The component says what is wrong with it, or is made without it.
        return given
    origin = get_origin(inner)
    if origin is list and isinstance(given, list):
        (item,) = get_args(inner)
        return [
            _value(reading, item, each, f"{python}[{at}]", f"{schema}[{at}]", key)
            for at, each in enumerate(given)
        ]
    if origin is dict and isinstance(given, Mapping):
        _, item = get_args(inner)
        return {
            name: _value(reading, item, each, f"{python}[{name!r}]", _below(schema, name), key)
            for name, each in given.items()
        }
    if is_typeddict(inner):
        return _record(reading, inner, given, python, schema)
    return given


def _record(reading: Reading, declared: Any, given: Any, python: str, schema: str) -> Any:
    if not isinstance(given, Mapping):
        reading.problems.append(_placed(wrong_type("", given, "an object"), schema))
        reading.unread.add(schema)
        return None
    before = len(reading.problems)
    fields = _fields(reading, declared, given, python, schema)
    name = declared.__name__
    chosen = [each for each in ONE_OF.get(name, ()) if each in fields]
    if name in ONE_OF and len(chosen) != 1:
        reading.problems.append(_not_one(name, chosen, schema))
    if len(reading.problems) > before:
        reading.unread.add(schema)
        return None
    return RECORDS[name](fields) if name in RECORDS else fields


def _joined(
    reading: Reading, declared: Any, fields: dict[str, Any], python: str, schema: str
) -> dict[str, Any]:
    """Return *fields* with one argument in place of the forms that it has here."""
    known = declared.__annotations__
    forms = {form: key for form, key in _BESIDE.items() if form in fields and key in known}
    for form, key in forms.items():
        value = fields.pop(form)
        if form in ("all_devices", "without_driver"):
            if value is False:
                continue
            value = "all" if form == "all_devices" else None
        place = _below(schema, to_camel(form))
        if key in fields:
            reading.problems.append(_excluded(place, to_camel(key)))
        fields[key] = value
        reading.places[_below(python, key)] = place
    if "match" in declared.__annotations__:
        tests = list(_selectors(reading, fields, python, schema))
        if tests:
            fields["select"] = tests[0] & tests[1] if len(tests) == 2 else tests[0]
    return fields


def _selectors(reading: Reading, fields: dict[str, Any], python: str, schema: str) -> Iterator[Selector]:
    """Yield the selectors of `match` and `select`, which are taken out of *fields*."""
    by_field, written = fields.pop("match", None), fields.pop("select", None)
    if by_field is not None:
        place = _below(schema, "match")
        selector, problems = selector_of(by_field)
        reading.problems.extend(_placed(each, f"{place}.{reading.path_of(each.path)}") for each in problems)
        if selector is not None:
            yield selector
            if written is None:
                reading.places[_below(python, "select")] = place
    if isinstance(written, str):
        yield cel(written)
    elif written is not None:
        path = _below(schema, "select")
        reading.problems.append(_placed(wrong_type("", written, "the text of an expression"), path))


def _path_in_python(declared: str, key: str, path: str) -> str:
    """Return the path that problems have for the field *key* of an object at *path*."""
    name = _FIELDS_IN_PYTHON.get((declared, key))
    if name is not None:
        return _below(path, name)
    # A field that is chosen of several is the record itself.
    return path if key in ONE_OF.get(declared, ()) else _below(path, key)


def _class_of(given: Settled | pulumi.Output[Any]) -> ClassRef:
    """Return a class by its name, which depends on what makes it."""
    if isinstance(given, Settled):
        return InstalledClass(given.value, resources=given.resources)
    return ClassRef(given)


def _output_of(given: Settled | pulumi.Output[Any]) -> pulumi.Output[Any]:
    return given.output if isinstance(given, Settled) else given


def _input_of(type_: Any) -> tuple[Any, bool]:
    """Return a declared type without what Pulumi and TypedDicts put around it, and whether it may be an Output."""
    if get_origin(type_) is Required:
        (type_,) = get_args(type_)
    for member in get_args(type_):
        if get_origin(member) is Awaitable:
            return get_args(member)[0], True
    return type_, False


def _below(path: str, name: str) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        return f"{path}.{name}" if path else name
    return f'{path}["{name}"]'


def _renamed(part: re.Match[str]) -> str:
    text = part[0]
    return text.replace("'", '"') if text.startswith("[") else to_camel(text)


def _placed(problem: Problem, path: str) -> Problem:
    return Problem(path=path, code=problem.code, message=problem.message, hint=problem.hint)


def _excluded(path: str, other: str) -> Problem:
    message = f"is given beside {other}"
    return Problem(path=path, code="arguments-exclude", message=message, hint="leave one of the two out")


def _not_one(name: str, chosen: list[str], path: str) -> Problem:
    fields = ", ".join(map(to_camel, ONE_OF[name]))
    if chosen:
        written = " and ".join(map(to_camel, chosen))
        message = f"{written} are given, and it is one of them"
        return Problem(path=path, code="arguments-exclude", message=message, hint=f"keep one of {fields}")
    message = f"none of {fields} is given"
    return Problem(path=path, code="missing-argument", message=message, hint="write one of them")
