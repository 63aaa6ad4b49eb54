"""The results of many cells as a table."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from models.scaling.policies import POLICIES
from pipelines.arena.grid import Finished
from pipelines.arena.scoring.runs import knob_value


def results_table(finished: Sequence[Finished]) -> pa.Table:
    """One row per cell: its inputs, its metrics, and the key of its trace; `knob` names the setting that a sweep varies."""
    rows = [
        {
            "job": one.cell.job.name,
            "workload": one.cell.workload.name,
            "policy": one.cell.policy,
            "knob": POLICIES[one.cell.policy].knob.setting,
            "knob_value": knob_value(one),
            "seed": one.cell.seed,
            "cluster": one.cell.cluster.name,
            "placement": one.cell.placement,
            "rescale_mode": one.cell.rescale_mode,
            "start": one.cell.start,
            "burn_in_s": one.cell.burn_in_s,
            "least_between_s": one.cell.least_between_s,
            "peak_rate": one.cell.workload.peak_rate,
            **one.outcome.model_dump(exclude={"convergences"}),
            "convergence_s": one.outcome.convergence_s,
            "convergence_steps": one.outcome.convergence_steps,
            "key": one.key,
        }
        for one in finished
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS_SCHEMA)


_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()
RESULTS_SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, _TEXT, nullable=False) for name in ("job", "workload", "policy", "knob")),
        pa.field("knob_value", _NUMBER, nullable=False),
        pa.field("seed", _COUNT, nullable=False),
        *(pa.field(name, _TEXT, nullable=False) for name in ("cluster", "placement", "rescale_mode", "start")),
        *(pa.field(name, _NUMBER, nullable=False) for name in ("burn_in_s", "least_between_s", "peak_rate")),
        *(pa.field(name, _NUMBER) for name in ("latency_p50_s", "latency_p95_s")),
        *(pa.field(name, _NUMBER) for name in ("within_1_s", "within_10_s", "within_60_s")),
        *(pa.field(name, _NUMBER, nullable=False) for name in ("input_rate", "throughput")),
        pa.field("throughput_ratio", _NUMBER),
        *(
            pa.field(name, _NUMBER, nullable=False)
            for name in ("most_lag", "last_lag", "task_hours", "memory_gib_hours")
        ),
        *(pa.field(name, _COUNT, nullable=False) for name in ("most_tasks", "rescales", "refusals", "held_back")),
        pa.field("downtime_s", _NUMBER, nullable=False),
        pa.field("convergence_s", _NUMBER),
        pa.field("convergence_steps", _COUNT, nullable=False),
        pa.field("key", _TEXT, nullable=False),
    ]
)
"""Units as in `pipelines.arena.replays.cell.ReplayOutcome`."""
