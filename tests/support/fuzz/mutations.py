"""Wrong files made from right ones: changes to the structure, to the values, and to the bytes."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import yaml

Path = tuple[str | int, ...]

STRINGS = (
    "",
    " ",
    "x" * 5000,
    "../../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "a/b",
    "..",
    "CON",
    "[bold]x[/bold]",
    "[/]",
    "{control}",
    "%s%n",
    "$(id)",
    "' OR 1=1 --",
    "\x00",
    "\x1b[31mred",
    "\u202egnp.exe",
    "Ω≈ç√∫😀",
    "\ud800",
    "null",
    "nan",
    "-inf",
    "1e400",
    "0x10",
    "1_000",
    "true",
    "2025-01-01",
    "!!python/object/apply:os.system ['id']",
)
NUMBERS = (
    0,
    -1,
    1,
    2,
    0.5,
    -0.0,
    1e-320,
    1e-9,
    1e9,
    2**31,
    2**53 + 1,
    2**63,
    10**30,
    1e308,
    -1e308,
    1e400,
    -1e400,
    float("nan"),
)
OTHERS = (None, True, False, [], {}, [[]], [None], {"": ""}, {"name": None}, [1, "a", None])
UNKNOWN_FIELDS = ("nmae", "", "__class__", "schema_version", "name", "Name", "x" * 300, "\u0000", "0")


def paths(data: Any, at: Path = ()) -> Iterator[Path]:
    """Paths of all values, that of the whole document first."""
    yield at
    if isinstance(data, dict):
        for name, value in data.items():
            yield from paths(value, (*at, name))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from paths(value, (*at, place))


def get(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def put(data: Any, path: Path, value: Any) -> Any:
    """The data with another value at the path; it is changed in place unless the whole is replaced."""
    if not path:
        return value
    get(data, path[:-1])[path[-1]] = value
    return data


def nested(depth: int, kind: str) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"operators": value}
    return value


def mutated(rng: random.Random, data: Any) -> Any:
    """A copy with one to four changes."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        data = _changed(rng, data)
    return data


def _changed(rng: random.Random, data: Any) -> Any:
    path = rng.choice(list(paths(data)))
    found = get(data, path)
    change: Callable[[random.Random, Any, Path, Any], Any] = rng.choice(
        (_replace, _replace, _replace, _drop, _drop, _repeat, _add, _rename, _scale, _swap, _deepen)
    )
    return change(rng, data, path, found)


def _replace(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    return put(data, path, copy.deepcopy(rng.choice(rng.choice((STRINGS, NUMBERS, OTHERS)))))


def _drop(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    if path:
        del get(data, path[:-1])[path[-1]]
    return data


def _repeat(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    if isinstance(found, list) and found:
        found.append(copy.deepcopy(rng.choice(found)))
    return data


def _add(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    if isinstance(found, dict):
        found[rng.choice(UNKNOWN_FIELDS)] = rng.choice((*NUMBERS, *STRINGS))
    elif isinstance(found, list):
        found.insert(rng.randint(0, len(found)), rng.choice(OTHERS))
    return data


def _rename(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    if path and isinstance(path[-1], str):
        del get(data, path[:-1])[path[-1]]
        get(data, path[:-1])[rng.choice((path[-1].upper(), path[-1] + "s", path[-1][1:], *UNKNOWN_FIELDS))] = found
    return data


def _scale(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    if isinstance(found, int | float) and not isinstance(found, bool):
        return put(data, path, found * rng.choice((-1, 0, 1000, 1e-12, 1e12, 1.0000001)))
    return data


def _swap(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    """A value of the document in another place: edges to oneself, repeated names, swapped types."""
    other = rng.choice(list(paths(data)))
    return put(data, path, copy.deepcopy(get(data, other)))


def _deepen(rng: random.Random, data: Any, path: Path, found: Any) -> Any:
    return put(data, path, nested(rng.choice((3, 50, 200)), rng.choice(("list", "map"))))


def as_bytes(rng: random.Random, data: Any, form: str) -> bytes:
    """The data as `json` or `yaml`, one time in four with damage to the text."""
    try:
        text = yaml.safe_dump(data, allow_unicode=True) if form == "yaml" else json.dumps(data)
    except (RecursionError, yaml.YAMLError):
        text = json.dumps(nested(900, "list"))
    content = text.encode("utf-8", "surrogatepass")
    return damaged(rng, content, form) if rng.random() < 0.25 else content


def damaged(rng: random.Random, content: bytes, form: str = "json") -> bytes:
    """The file with something wrong in its bytes."""
    at = rng.randint(0, len(content))
    damage = rng.randrange(9)
    if damage == 0:
        return content[:at]
    if damage == 1:
        return content[:at] + rng.randbytes(rng.choice((1, 8, 64))) + content[at:]
    if damage == 2:
        return content[:at] + content[at + rng.randint(1, 20) :]
    if damage == 3:
        return b"\xef\xbb\xbf" + content
    if damage == 4:
        return content.decode("utf-8", "replace").encode("utf-16")
    if damage == 5:
        return content[:at] + b"\x00" + content[at:]
    if damage == 6:
        return rng.randbytes(rng.choice((0, 1, 100, 5000)))
    if damage == 7:
        return rng.choice(
            BOMBS if form == "yaml" else (b"[" * 100_000, b'{"a":' * 50_000, b"", b"null", b"NaN", b'"text"')
        )
    line = rng.choice(content.splitlines() or [b""])
    return content[:at] + line * rng.choice((1, 3)) + content[at:]


BOMBS = (
    b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("k"))),
    b"&a [*a]\n",
    b"a: &x {<<: *x}\n",
    b"<<: [1, 2]\n",
    b"? {a: b}\n: c\n",
    b"? [a]\n: c\n",
    b"!!python/object/apply:os.system ['id']\n",
    b"!!binary ////\n",
    b"name: !!timestamp 2025-13-45\n",
    b"--- a\n--- b\n",
    b"a: b: c\n",
    b"\t- a\n",
    b"%YAML 9.9\n---\na: 1\n",
    b"- " * 20_000 + b"a\n",
    b"{" * 20_000,
    b"[" * 50_000,
    b"name: &a q\njob: *b\n",
    b"a: 0o99\nb: 1:60:60\nc: 1_000\n",
    b"a: " + b"9" * 10_000 + b"\n",
)


def mutated_table(rng: random.Random, text: str) -> bytes:
    """A CSV file with changes to cells, rows, columns or bytes."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.choice(rows)
        choice = rng.randrange(7)
        if choice <= 2 and row:
            row[rng.randrange(len(row))] = str(rng.choice(rng.choice((STRINGS, NUMBERS, OTHERS))))
        elif choice == 3:
            row.append("more")
        elif choice == 4 and row:
            row.pop(rng.randrange(len(row)))
        elif choice == 5 and len(rows) > 1:
            rows.remove(row)
        else:
            rows.insert(rng.randint(0, len(rows)), list(row))
    content = "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
    return damaged(rng, content) if rng.random() < 0.2 else content
