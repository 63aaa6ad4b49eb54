"""Validation errors in words: the field, the value, the rule, and the nearest correct spelling."""

import difflib
import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

MOST_FAULTS_SHOWN: Final = 5
Location = tuple[str | int, ...]
LineOf = Callable[[Location], int | None]

_short = reprlib.Repr()
_short.maxlevel = 2
_short.maxdict = _short.maxlist = _short.maxtuple = 4
_short.maxstring = _short.maxother = 60


def explain(error: ValidationError, model: type[BaseModel], data: Any, line_of: LineOf) -> str:
    """One line per fault, at most MOST_FAULTS_SHOWN; faults that differ only in the list item are reported once.

    Args:
        data: the validated data; list items are named by their field `name`, if they have one.
    """
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for fault in _causes(error.errors(include_url=False)):
        fields = tuple(part for part in fault["loc"] if isinstance(part, str))
        groups.setdefault((fault["type"], fields, _short.repr(fault["input"])), []).append(fault)
    lines = [_explain_group(group, model, data, line_of) for group in list(groups.values())[:MOST_FAULTS_SHOWN]]
    if len(groups) > MOST_FAULTS_SHOWN:
        lines.append(f"... and {len(groups) - MOST_FAULTS_SHOWN} more")
    return lines[0] if len(lines) == 1 else "\n  ".join([f"{len(groups)} faults", *lines])


def _causes(faults: list[Any]) -> list[Any]:
    """The faults without lists that are only too short because their items are wrong."""
    return [
        fault
        for fault in faults
        if fault["type"] != "too_short"
        or not any(other is not fault and other["loc"][: len(fault["loc"])] == fault["loc"] for other in faults)
    ]


def nearest(word: str, known: Sequence[str]) -> str:
    """`did you mean 'cost'? `, or empty if no known word is similar."""
    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""


def _explain_group(faults: list[Any], model: type[BaseModel], data: Any, line_of: LineOf) -> str:
    fault = faults[0]
    line = line_of(fault["loc"])
    place = f"line {line}: " if line is not None and fault["loc"] else ""
    more = f" (and {len(faults) - 1} more like it)" if len(faults) > 1 else ""
    return f"{place}{_explain_fault(fault, model, data)}{more}"


def _explain_fault(fault: Any, model: type[BaseModel], data: Any) -> str:
    location: Location = fault["loc"]
    where = _where(location, data)
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        known = known_fields(model, location[:-1])
        hint = nearest(str(location[-1]), known)
        return f"field '{where}' is not known; {hint}known fields here: {', '.join(known)}"
    if fault["type"] == "missing":
        return f"field '{where}' is missing; add it"
    if fault["type"] == "enum" and isinstance(fault["input"], str):
        hint = nearest(fault["input"], re.findall(r"'([^']*)'", fault["ctx"]["expected"]))
        return f"field '{where}': {message}, but got {_short.repr(fault['input'])}{'; ' + hint.strip() if hint else ''}"
    if isinstance(fault.get("ctx", {}).get("error"), ValueError):
        return f"'{where}': {message}" if location else message
    return f"field '{where}': {message}, but got {_short.repr(fault['input'])}"


def _where(location: Location, data: Any) -> str:
    """`operators.1 (window).cost.cpu_s`: the path, with the name of each list item that has one."""
    path = ""
    for part in location:
        path += f".{part}" if path else str(part)
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            data = None
        if isinstance(part, int) and isinstance(data, dict) and isinstance(data.get("name"), str):
            path += f" ({_short.repr(data['name'])[1:-1]})"
    return path or "the document"


def known_fields(model: type[BaseModel], location: Location) -> list[str]:
    """Fields (as a user writes them) of the model at `location` within `model`."""
    for part in location:
        if not isinstance(part, str):
            continue
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        inner = next(_models_in(field.annotation), None) if field else None
        if inner is None:
            break
        model = inner
    shorthand: tuple[str, ...] = getattr(model, "SHORTHAND", ())
    return [*(field.alias or name for name, field in model.model_fields.items()), *shorthand]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models in a type such as `tuple[Operator, ...]` or `Window | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
