"""Wrong files, and wrong answers of servers, to every entry point: an exit code of those stated and a message, never a
traceback.

SLUICE_FUZZ_CASES says how many; `make fuzz` runs 10,000. A case that failed is repeated by its number: SLUICE_FUZZ_FIRST.
"""

import os
import random
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.entry_points import STATED, Corpus, EntryPoint, entry_points
from fuzz.servers import server_entry_points
from pipelines.inputs.parsing.documents import parse_json

CASES = int(os.environ.get("SLUICE_FUZZ_CASES", "1000"))
FIRST = int(os.environ.get("SLUICE_FUZZ_FIRST", "0"))
SHOWN = 12
LONGEST_CPU_S = 20.0
"""Of one case, in processor time: 1,000 times the usual."""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where mutations are written; commands and tasks find their workspace there."""
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path


class TooLong(BaseException):
    """A case took more processor time than LONGEST_CPU_S; no handler of ours catches it by mistake."""


def _give_up(*_: object) -> None:
    raise TooLong


def _choose(rng: random.Random, points: list[EntryPoint]) -> EntryPoint:
    return rng.choices(points, [point.share for point in points])[0]


@pytest.mark.slow
def test_no_wrong_input_ends_in_a_traceback_or_another_exit_code(root: Path, places: Path) -> None:
    stored = parse_json((root / "tests" / "data" / "plans" / "nexmark-q5-v1.json").read_text()).data
    signal.signal(signal.SIGPROF, _give_up)
    with server_entry_points() as asking:
        endings, faults = _tried([*entry_points(Corpus(root, _stored(stored))), *asking], places)
    sys.stdout.write(_table(endings))
    shown = [f"case {case}: {what}\n{errors}" for what, (case, errors) in list(faults.items())[:SHOWN]]
    assert not faults, f"{len(faults)} kinds of fault\n" + "\n".join(shown)


def _tried(points: list[EntryPoint], places: Path) -> tuple[dict[str, Counter[int]], dict[str, tuple[int, str]]]:
    """How the cases ended, by entry point, and the bad endings: what was wrong -> the first such case, and what it said."""
    endings: dict[str, Counter[int]] = defaultdict(Counter)
    faults: dict[str, tuple[int, str]] = {}
    for case in range(FIRST, FIRST + CASES):
        rng = random.Random(case)
        point = _choose(rng, points)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_CPU_S)
        ending = point.call(rng, places)
        signal.setitimer(signal.ITIMER_PROF, 0)
        endings[point.name][ending.code] += 1
        if fault := ending.fault(point.is_json):
            where = (ending.errors.strip().splitlines() or [""])[-1][:200]
            faults.setdefault(f"{point.name}: {fault}: {where}", (case, ending.errors[-2500:]))
    return endings, faults


def _stored(document: dict[str, object]) -> dict[str, object]:
    """The file of a stored plan: the document may be the plan alone."""
    from pipelines.store.digests import digest

    return document if "digest" in document else {"schema_version": 1, "digest": digest(document), "plan": document}


def _table(endings: dict[str, Counter[int]]) -> str:
    lines = [f"{'entry point':<32}{'cases':>7}" + "".join(f"{f'{code} {what}':>22}" for code, what in STATED.items())]
    for name, codes in endings.items():
        lines.append(f"{name:<32}{codes.total():>7}" + "".join(f"{codes[code]:>22}" for code in STATED))
    total = sum(endings.values(), Counter[int]())
    lines.append(f"{'all':<32}{total.total():>7}" + "".join(f"{total[code]:>22}" for code in STATED))
    return "\n".join(lines) + "\n"
