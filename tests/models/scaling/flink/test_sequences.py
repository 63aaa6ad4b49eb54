"""Decisions of whole runs, as the operator's own end-to-end tests state them: one by one, on the same metrics.

`tests/data/flink_autoscaler/sequences.json` says what is measured when, and which rescales follow; at every other evaluation
the job is left as it is.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from models.scaling.flink.policy import FlinkAutoscaler
from models.scaling.flink.settings import FlinkSettings
from models.scaling.policy import Facts, Rescaled
from models.scaling.rates import Rates

SEQUENCES: Final = json.loads((Path(__file__).parents[3] / "data/flink_autoscaler/sequences.json").read_text())
RATE: Final = 80_000.0
"""Records/s at source and sink: 4,800,000 a minute."""
MINUTE_S: Final = 60.0
BUSY_FOR: Final = 10
"""Minutes that each busy time of a sequence lasts."""


def settings(name: str, **more: object) -> FlinkSettings:
    return FlinkSettings.model_validate(SEQUENCES["settings"][name] | more)


def metrics(tasks: int, rate: float, busy: float, **more: object) -> dict[str, object]:
    flow = {"observed_input_rate": rate, "observed_output_rate": rate}
    true = {"true_processing_rate": rate / busy, "true_output_rate": rate / busy}
    return {"parallelism": tasks, "busyness": busy, "max_busyness": busy, **flow, **true, **more}


def facts(time_s: float, rate: float, operators: dict[str, Any], **more: Any) -> Facts:
    rates = Rates.model_validate(
        {"edges": [("source", "sink")], "source_rates": {"source": rate}, "operators": operators}
    )
    return Facts(time_s=time_s, rates=rates, **more)


def evaluations(sequence: dict[str, Any]) -> Iterator[tuple[int, dict[str, float]]]:
    """Each minute, and the busy share of each vertex in it."""
    busy = sequence["busy"]
    minutes = sequence.get("minutes") or BUSY_FOR * len(busy["sink"])
    for minute in range(1, minutes + 1):
        yield minute, {name: shares[(minute - 1) // BUSY_FOR] / 1000 for name, shares in busy.items()}


@pytest.mark.parametrize(
    "sequence", SEQUENCES["delayed_scale_downs"], ids=lambda s: f"{s['name'].split('.')[1]}-{s['busy']['sink'][0]}"
)
def test_scale_downs_are_delayed_as_by_the_original(sequence):
    policy, tasks = FlinkAutoscaler(settings("delayed")), sequence["parallelism"]
    expected = {one["minute"]: {"source": one["source"], "sink": one["sink"]} for one in sequence["scalings"]}
    for minute, busy in evaluations(sequence):
        operators = {name: metrics(tasks[name], RATE, share, max_parallelism=4000) for name, share in busy.items()}
        found = policy.observe(facts(minute * MINUTE_S, RATE, operators, interval_s=MINUTE_S))
        decided = None if found.deploy is None else found.deploy.parallelism
        assert decided == expected.get(minute), (minute, found.reason)
        if minute in expected:
            return  # the original's test ends with the first rescale
    assert not expected


def test_a_backlog_is_worked_off_as_by_the_original():
    policy, rescaled = FlinkAutoscaler(settings("backlog", **{"metrics.window": 1})), None
    decisions = []
    for number, one in enumerate(SEQUENCES["backlog"]["rounds"]):
        if number > 0:
            # The window's length is not a state of the autoscaler: the original's test changes it, too.
            policy._window._settings = settings("backlog", **{"metrics.window": one["window_s"]})
            rescaled = Rescaled(ended_s=one["start_s"], downtime_s=0.0, state_mb=0.0)
        for step, given in enumerate(one["steps"], start=1):
            before, after = given["lag"]
            most, rate = one["max_parallelism"], float(given["read"])
            source = {"lag_records": after, "lag_change_per_s": after - before, "max_parallelism": most["source"]}
            operators = {
                "source": metrics(one["parallelism"], rate, one["busy"], **source),
                "sink": metrics(one["parallelism"], rate, one["busy"], max_parallelism=most["sink"]),
            }
            found = policy.observe(facts(one["start_s"] + step, rate, operators, interval_s=1.0, last_rescale=rescaled))
            wanted = given["tasks"]
            assert (None if found.deploy is None else found.deploy.parallelism) == (
                None if wanted is None else {"source": wanted, "sink": wanted}
            ), found.reason
            decisions.append(wanted)
    assert decisions == [4, None, None, 2, None, None, None]
