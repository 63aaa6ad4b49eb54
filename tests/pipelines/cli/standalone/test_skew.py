"""`sluice skew`: what it prints, and what it refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.keys.columns import Integers, row_hash
from models.keys.groups import group_of
from pipelines.cli import run

SOME_KEYS = np.random.default_rng(4).zipf(1.5, 3000) % 1000


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    file = tmp_path / "bids.parquet"
    at = pa.array(np.arange(3000) * 2000, pa.timestamp("us", "UTC"))
    unknown = pa.array(np.where(np.arange(3000) % 100, SOME_KEYS, 0), mask=np.arange(3000) % 100 == 0)
    pq.write_table(pa.table({"auction": SOME_KEYS, "at": at, "unknown": unknown}), file)
    return str(file)


def flinks(parallelism: int, groups: int) -> list[int]:
    of_keys = group_of(row_hash([Integers(SOME_KEYS.astype(np.int64), 8)]), groups)
    return np.bincount(of_keys * parallelism // groups, minlength=parallelism).tolist()


@pytest.mark.slow
def test_json_holds_heavy_hitters_tail_and_the_share_of_each_task(
    capsys: pytest.CaptureFixture[str], recorded: str
) -> None:
    assert run(["skew", recorded, "--key", "auction", "--parallelism", "6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values, counts = np.unique(SOME_KEYS, return_counts=True)
    hot = found["heavy_hitters"][0]
    assert (hot["key"], hot["low"]) == (int(values[counts.argmax()]), counts.max() / 3000)
    (shares,) = found["shares"]
    assert shares["records"] == flinks(6, 128) and shares["fullest_share"] == max(flinks(6, 128)) / 3000
    assert found["tail"]["exponent"]["low"] < 1.5 and found["change"] is None


@pytest.mark.slow
def test_stated_key_groups_a_condition_and_windows(capsys: pytest.CaptureFixture[str], recorded: str) -> None:
    options = ["--max-parallelism", "50", "--where", "auction >= 0", "--time", "at", "--window", "2"]
    assert run(["skew", recorded, "--key", "auction", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["parallelism"] for one in found["shares"]] == [1, 2, 4, 8, 16, 32]
    assert found["shares"][3]["records"] == flinks(8, 50)
    assert (found["change"]["windows"], found["change"]["window_s"]) == (3, 2.0)
    assert found["shares"][3]["in_windows"]["median"] > 0


@pytest.mark.slow
def test_people_get_keys_tail_tasks_and_change(capsys: pytest.CaptureFixture[str], recorded: str) -> None:
    assert run(["skew", recorded, "--key", "auction", "--parallelism", "3", "--time", "at"]) == 0
    shown = capsys.readouterr().out
    for part in ("3,000 records", "distinct keys", "Zipf exponent", "times ideal", "6 windows of 1 s", "█"):
        assert part in shown
    assert all(f"{records:,}" in shown for records in flinks(3, 128))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--key", "nowhere"], "nowhere"),
        (["--key", "unknown"], "in 30 of 3,000 records of .* it is NULL"),
        (["--key", "auction", "--where", "auction < 0"], "has no records with auction < 0"),
        (["--key", "auction", "--time", "auction"], "must be a timestamp"),
        (["--key", "struct(auction, at)"], "'at' must be a whole number"),
    ],
)
def test_what_cannot_be_a_key_is_one_message_and_exit_code_2(
    capfd: pytest.CaptureFixture[str], recorded: str, options: list[str], said: str
) -> None:
    assert run(["skew", recorded, *options]) == 2
    error = capfd.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert re.search(said, error)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.parquet", "--key", "a"], "nowhere.parquet does not exist"),
        (["EMPTY", "--key", "a"], "all of one format, but has none"),
        (["FILE", "--key", "a", "--parallelism", "0"], "it must be 1 or more, but got '0'"),
        (["FILE", "--key", "a", "--parallelism", "9", "--max-parallelism", "8"], "between 1 and the 8 key groups"),
        (["FILE", "--key", "a", "--window", "0"], "window_s"),
        (["FILE"], "--key"),
    ],
)
def test_wrong_options_are_answered_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "bids.parquet").touch()
    (tmp_path / "empty").mkdir()
    named = {"FILE": str(tmp_path / "bids.parquet"), "EMPTY": str(tmp_path / "empty")}
    assert run(["skew", *(named.get(one, one) for one in arguments)]) == 2
    assert said in capsys.readouterr().err
