"""Why a body is not the JSON that a schema asks for. Asked only for bodies that Spark already refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_WHOLE: Final = {"byte", "short", "integer", "long"}
_NUMBERS: Final = {"float", "double", "decimal"}
_SHOWN_MAX: Final = 80


def reason_for(schema: StructType) -> Callable[[bytes | None], str]:
    def reason(body: bytes | None) -> str:
        if not body:
            return "the body is empty, expected a JSON object"
        try:
            value = json.loads(body.decode())
        except UnicodeDecodeError as error:
            return f"not UTF-8: byte 0x{body[error.start]:02x} at position {error.start}"
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                return f"not JSON: {error}"
            return (
                f"expected one JSON object and nothing behind it, got more from character {error.pos} on: "
                f"{_short(error.doc[error.pos :])}; objects on lines of their own are read with the format json-lines"
            )
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
        if not isinstance(value, dict):
            return f"expected a JSON object, got {_show(value)}"
        return _fault(schema, value, "") or f"does not match the schema {schema.simpleString()}"

    return reason


def _fault(wanted: DataType, value: Any, place: str) -> str | None:
    """What is wrong with a value, or None if nothing seems to be."""
    kind = wanted.typeName()
    if value is None:
        return None
    if kind == "struct":
        return _struct_fault(wanted, value, place)
    if kind == "array":
        if not isinstance(value, list):
            return _expected("a list", value, place)
        element: DataType = wanted.elementType  # type: ignore[attr-defined]
        faults = (_fault(element, each, f"{place}[{at}]") for at, each in enumerate(value))
        return next((fault for fault in faults if fault), None)
    if kind == "map":
        return None if isinstance(value, dict) else _expected("an object", value, place)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in _WHOLE and not (is_number and isinstance(value, int)):
        return _expected("a whole number", value, place)
    if kind in _NUMBERS and not is_number:
        return _expected("a number", value, place)
    if kind == "boolean" and not isinstance(value, bool):
        return _expected("true or false", value, place)
    if kind in ("date", "timestamp", "timestamp_ntz") and not isinstance(value, str):
        return _expected(f"a {kind} as text", value, place)
    return None


def _struct_fault(wanted: Any, value: Any, place: str) -> str | None:
    if not isinstance(value, dict):
        return _expected("an object", value, place)
    for field in wanted.fields:
        name = f"{place}.{field.name}" if place else field.name
        found = value.get(field.name)
        if found is None and not field.nullable:
            return f"field {name} is missing"
        fault = _fault(field.dataType, found, name)
        if fault:
            return fault
    return None


def _expected(what: str, value: Any, place: str) -> str:
    return f"field {place}: expected {what}, got {_show(value)}"


def _show(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
