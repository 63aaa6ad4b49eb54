"""Options of commands from the fields of a request: its names, bounds, defaults and descriptions."""

import math
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, signature
from types import FunctionType
from typing import Annotated, Any, Final

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

ARGUMENT: Final = "job"
"""The only positional argument; all other fields are options."""
TYPES: Final = {"integer": int, "number": float, "string": str}


def request_options(
    request: type[BaseModel], *names: str, optional: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command whose first parameter takes the values of these fields, by name.

    The command gets one option for each of them before its own.

    Args:
        optional: required fields that the command itself asks for where it needs them; None if they are not given.
    """
    schemas = request.model_json_schema()["properties"]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def called(**given: Any) -> None:
            command({name: given.pop(name) for name in names}, **given)

        made = [_parameter(name, request.model_fields[name], _flat(schemas[name]), name in optional) for name in names]
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in list(signature(command).parameters.values())[1:]]
        parameters = sorted([*made, *own], key=lambda p: p.default is not Parameter.empty)  # required ones first
        assert isinstance(command, FunctionType)
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        called.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        return called

    return decorate


def _parameter(name: str, field: FieldInfo, schema: Mapping[str, Any], optional: bool) -> Parameter:
    kind: Any = field.annotation if "enum" in schema else TYPES[schema["type"]]
    default = None if optional else Parameter.empty if field.is_required() else field.default
    annotation = kind | None if default is None else kind
    if name == ARGUMENT:
        info: Any = typer.Argument(metavar=name.upper(), help=schema["description"])
    else:
        spellings = dict.fromkeys(f"--{spelling.replace('_', '-')}" for spelling in (name, schema.get("option", name)))
        info = typer.Option(
            *spellings,
            min=schema.get("minimum", schema.get("exclusiveMinimum")),
            max=schema.get("maximum"),
            callback=_within(schema) if kind is float else None,
            metavar=schema.get("metavar"),
            help=schema["description"],
        )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an optional field without its null."""
    given: Mapping[str, Any] = next((option for option in schema.get("anyOf", ()) if option["type"] != "null"), {})
    return {**schema, **given}


def _within(schema: Mapping[str, Any]) -> Callable[[float | None], float | None]:
    """Refuses what the range check lets through: an excluded minimum, and NaN."""

    def check(value: float | None) -> float | None:
        if value is not None and not value > schema.get("exclusiveMinimum", -math.inf):
            low = schema.get("exclusiveMinimum", schema.get("minimum"))
            raise typer.BadParameter(f"it must be a number above {low}, but got {value}")
        return value

    return check
