"""The reference of the HTTP API, read from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """A parameter of an endpoint, or a field of its body."""

    name: str
    where: str  # "path", "query", "header" or "body"
    type: str
    is_required: bool


class Endpoint(NamedTuple):
    """A path and a method."""

    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    statuses: tuple[str, ...]


def read_endpoints(openapi: Mapping[str, Any]) -> list[Endpoint]:
    """Return the endpoints of an OpenAPI description."""
    return [
        Endpoint(
            method.upper(),
            path,
            said.get("description", said.get("summary", "")),
            tuple(_read_parameters(openapi, said)),
            tuple(said["responses"]),
        )
        for path, methods in openapi["paths"].items()
        for method, said in methods.items()
    ]


def _read_parameters(openapi: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Parameter]:
    for field in said.get("parameters", ()):
        kind = _describe_type(openapi, field["schema"])
        yield Parameter(field["name"], field["in"], kind, field.get("required", False))
    for content in said.get("requestBody", {}).get("content", {}).values():
        body = _resolve(openapi, content["schema"])
        for name, schema in body.get("properties", {}).items():
            yield Parameter(
                name, "body", _describe_type(openapi, schema), name in body.get("required", ())
            )


def _resolve(openapi: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a reference leads to."""
    for step in schema.get("$ref", "").split("/")[1:]:
        openapi = openapi[step]
    return openapi if "$ref" in schema else schema


def _describe_type(openapi: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the type of a value, in a few words."""
    schema = _resolve(openapi, schema)
    if "anyOf" in schema:
        return " or ".join(_describe_type(openapi, each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_describe_type(openapi, schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
