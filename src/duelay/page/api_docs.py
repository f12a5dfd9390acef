"""The calls of the service, for people: its OpenAPI description as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Field(NamedTuple):
    """Something that is sent."""

    name: str
    where: str  # "path", "query", "header" or "body"
    kind: str
    is_needed: bool


class Call(NamedTuple):
    """An address and a method."""

    method: str
    path: str
    words: str
    fields: tuple[Field, ...]
    answers: tuple[str, ...]  # statuses


def read_calls(openapi: Mapping[str, Any]) -> list[Call]:
    """Return the calls of an OpenAPI description."""
    return [
        Call(
            method.upper(),
            path,
            said.get("description", said.get("summary", "")),
            tuple(_fields(openapi, said)),
            tuple(said["responses"]),
        )
        for path, methods in openapi["paths"].items()
        for method, said in methods.items()
    ]


def _fields(openapi: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Field]:
    for field in said.get("parameters", ()):
        kind = _kind(openapi, field["schema"])
        yield Field(field["name"], field["in"], kind, field.get("required", False))
    for content in said.get("requestBody", {}).get("content", {}).values():
        body = _found(openapi, content["schema"])
        for name, schema in body.get("properties", {}).items():
            yield Field(name, "body", _kind(openapi, schema), name in body.get("required", ()))


def _found(openapi: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference."""
    for step in schema.get("$ref", "").split("/")[1:]:
        openapi = openapi[step]
    return openapi if "$ref" in schema else schema


def _kind(openapi: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return what a value may be, in a few words."""
    schema = _found(openapi, schema)
    if "anyOf" in schema:
        return " or ".join(_kind(openapi, each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(openapi, schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
