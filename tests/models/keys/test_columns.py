"""Hash codes of keys are Flink's: the table comes from its classes (tests/testbeds/flink/local/test_key_hashes.py)."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from models.keys.columns import Column, Integers, Texts, row_hash
from models.keys.groups import group_of

TABLE = Path(__file__).parents[2] / "data" / "flink" / "key-hashes.tsv"
WIDTHS = {"LONG": 8, "BIGINT": 8, "INTEGER": 4, "INT": 4, "DATE": 4, "SHORT": 2, "SMALLINT": 2, "BYTE": 1, "TINYINT": 1}


def by_type() -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines(), delimiter="\t"):
        rows[row["type"]].append(row)
    return rows


def column(kind: str, keys: list[str]) -> Column:
    if kind.upper() == "BOOLEAN":
        return Integers(np.array([key == "true" for key in keys], np.int64), 1, boolean=True)
    if kind.upper() == "STRING":
        return texts(keys)
    return Integers(np.array([int(key) for key in keys], np.int64), WIDTHS[kind.upper()])


def texts(keys: list[str]) -> Texts:
    """With other texts before and after, as in a slice of a longer column."""
    encoded = [key.encode() for key in ["vorher ä", *keys, "nachher"]]
    offsets = np.cumsum([0, *(len(one) for one in encoded)])
    return Texts(np.frombuffer(b"".join(encoded), np.uint8), offsets[1:-1])


@pytest.mark.parametrize("kind", sorted(by_type()))
def test_hash_codes_and_key_groups_are_flinks(kind: str) -> None:
    rows = by_type()[kind]
    kinds = kind.split(",")
    parts = zip(*(row["key"].split(",") if len(kinds) > 1 else [row["key"]] for row in rows), strict=True)
    columns = [column(one, list(keys)) for one, keys in zip(kinds, parts, strict=True)]
    hashed = row_hash(columns) if kind.isupper() or len(kinds) > 1 else columns[0].java_hash()
    assert hashed.view(np.int32).tolist() == [int(row["hash_code"]) for row in rows]
    for total in (128, 32768, 1000):
        assert group_of(hashed, total).tolist() == [int(row[f"group_of_{total}"]) for row in rows]


@pytest.mark.parametrize("seed", range(3))
def test_keys_hash_alike_alone_and_among_others(seed: int) -> None:
    random = np.random.default_rng(seed)
    keys = ["".join(random.choice(list("aé日😀"), random.integers(0, 20))) for _ in range(50)]
    numbers = Integers(random.integers(-(2**62), 2**62, 50), 8)
    together = row_hash([texts(keys), numbers, texts(keys[::-1])])
    for at in range(50):
        alone = row_hash([texts([keys[at]]), Integers(numbers.values[at : at + 1], 8), texts([keys[-1 - at]])])
        assert alone[0] == together[at]
        assert texts([keys[at]]).java_hash()[0] == texts(keys).java_hash()[at]
