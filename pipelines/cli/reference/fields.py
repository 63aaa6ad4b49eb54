"""Markdown of JSON Schemas: a table of fields with type, bounds, default and meaning."""

import json
from typing import Any, Final

NOTE: Final = "This page is generated from the code by `python -m pipelines.cli.reference`.\n"
_BOUNDS: Final = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))


def fields_table(schema: dict[str, Any], parts: dict[str, Any], pages: dict[str, str] | None = None) -> str:
    """Markdown table of the fields of a JSON Schema; `pages` names the formats that have a section of their own."""
    required = set(schema.get("required", []))
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, rule in schema["properties"].items():
        kind, default = _type(rule, parts, pages or {}), "required" if name in required else _value(rule)
        lines.append(f"| `{name}` | {kind} | {default} | {cell(rule.get('description', ''))} |")
    return "\n".join(lines) + "\n"


def _value(rule: dict[str, Any]) -> str:
    """The default of a field; empty if it carries no information."""
    default = rule.get("default")
    return (
        ""
        if default in (None, "") or isinstance(default, dict | list) or "const" in rule
        else f"`{json.dumps(default).strip(chr(34))}`"
    )


def _type(rule: dict[str, Any], parts: dict[str, Any], pages: dict[str, str]) -> str:
    """The type of a field in words."""
    if "anyOf" in rule:
        return " or ".join(_type(option, parts, pages) for option in rule["anyOf"])
    if "$ref" in rule:
        name = str(rule["$ref"]).rsplit("/", 1)[-1]
        part = parts.get(name, {})
        if "properties" not in part:
            return _type(part, parts, pages) if part.get("type") or "enum" in part else name
        return f"[{name}](#{pages.get(name, name).lower()})" if pages else name
    if "enum" in rule:
        return ", ".join(f"`{value}`" for value in rule["enum"])
    if "const" in rule:
        return f"always {rule['const']}"
    if rule.get("type") == "array":
        return f"list of {_type(rule['items'], parts, pages)}" if "items" in rule else "list"
    if rule.get("type") == "object" and isinstance(rule.get("additionalProperties"), dict):
        return f"map to {_type(rule['additionalProperties'], parts, pages)}"
    bounds = [f"{sign} {rule[bound]:g}" for bound, sign in _BOUNDS if bound in rule]
    name = "text" if rule["type"] == "string" else str(rule["type"])
    return f"{name} {' and '.join(bounds)}".rstrip()


def cell(text: str) -> str:
    """Text as the content of one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def paragraphs(text: str | None) -> str:
    """A docstring with each paragraph on one line."""
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))
