"""Parse YAML and JSON of users: strict, bounded, and with the line of each value.

Refused: repeated fields (the last one would win silently), tags that build objects, and documents that expand to more
than MOST_VALUES values through aliases ("billion laughs").
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

MOST_VALUES: Final = 1_000_000
"""Most values in a YAML document, each alias counted as often as it is used."""


class Unparsable(ValueError):
    """The text is not a valid document; the message says why, and what to change."""


@dataclass(frozen=True)
class Document:
    """Parsed data, with its line numbers."""

    data: Any
    _root: yaml.Node | None = None

    def line_of(self, location: Sequence[str | int]) -> int | None:
        """Line of the value at `location` (or of the nearest enclosing field), from 1; None without one."""
        if self._root is None:
            return None
        node, line = self._root, None
        for part in location:
            inner = _child(node, part)
            if inner is None:
                break
            node, line = inner, int(inner.start_mark.line) + 1
        return line


def parse_json(text: str) -> Document:
    """Parse JSON.

    Raises:
        Unparsable: it is not JSON, repeats a field, or is nested too deeply.
    """
    try:
        return Document(json.loads(text, object_pairs_hook=_once))
    except RecursionError:
        raise Unparsable("it is nested too deeply; flatten it") from None
    except json.JSONDecodeError as error:
        raise Unparsable(str(error)) from None


def parse_yaml(text: str) -> Document:
    """Parse YAML with plain values only.

    Raises:
        Unparsable: it is not YAML, repeats a field, names a tag that builds an object, or expands to too much.
    """
    try:
        return _parse_yaml(text)
    except RecursionError:
        raise Unparsable("it is nested too deeply; flatten it") from None
    except yaml.constructor.ConstructorError as error:
        raise Unparsable(f"{_message(error)}; use plain values: text, numbers, lists and mappings") from None
    except yaml.MarkedYAMLError as error:
        raise Unparsable(_message(error)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise Unparsable(str(error)) from None


def _message(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return place + ", ".join(text for text in (error.context, error.problem) if text)


def _parse_yaml(text: str) -> Document:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Document(None)
        _check_size(root)
        return Document(loader.construct_document(root), root)
    finally:
        loader.dispose()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unparsable(f"the field {twice!r} appears {names.count(twice)} times in one mapping; keep one of them")
    return fields


def _check_size(root: yaml.Node) -> None:
    """Refuse a document that expands to more than MOST_VALUES values; linear in the nodes as written."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            return sizes[id(node)]
        if id(node) in open_nodes:
            raise Unparsable(f"line {node.start_mark.line + 1} contains itself through an alias; write it out")
        open_nodes.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _check_fields(node)
            total = 1 + sum(size(key) + size(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            total = 1 + sum(size(item) for item in node.value)
        else:
            total = 1
        if total > MOST_VALUES:
            raise Unparsable(f"it expands to more than {MOST_VALUES} values through aliases; write it without them")
        open_nodes.discard(id(node))
        sizes[id(node)] = total
        return total

    size(root)


def _check_fields(node: yaml.MappingNode) -> None:
    first_line: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        line = key.start_mark.line + 1
        if key.value in first_line:
            raise Unparsable(
                f"the field {key.value!r} appears on line {first_line[key.value]} and again on line {line}; "
                "keep one of them"
            )
        first_line[key.value] = line


def _child(node: yaml.Node, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item: yaml.Node = node.value[part]
        return item
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None
