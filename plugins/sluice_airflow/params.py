"""Parameters of DAGs from the fields of a request: its names, bounds, defaults and descriptions."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param
from pydantic import BaseModel

OF_THE_COMMAND_LINE = ("title", "default", "option", "metavar")


def params_of(request: type[BaseModel], *names: str, **examples: Any) -> dict[str, Param]:
    """One parameter for each field.

    Args:
        names: the fields to take; all but the version of the format if none is named.
        examples: values that the form offers for fields without a default; without one such a field may be left out.
    """
    properties = request.model_json_schema()["properties"]
    return {
        name: _param(properties[name], examples.get(name))
        for name in names or (name for name in properties if name != "schema_version")
    }


def _param(schema: Mapping[str, Any], example: Any) -> Param:
    default = schema.get("default", example)
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind["type"] != "null"]
    kept = {key: value for key, value in {**schema, **kinds[0]}.items() if key not in (*OF_THE_COMMAND_LINE, "anyOf")}
    if kept["type"] == "number":
        # NaN would pass all bounds, since comparisons with it are false.
        kept["not"] = {"type": "number", "exclusiveMaximum": kept.get("minimum", kept.get("exclusiveMinimum"))}
    if default is None:
        kept["type"] = ["null", kept["type"]]
        if "enum" in kept:
            kept["enum"] = [None, *kept["enum"]]
    return Param(default, **kept)
