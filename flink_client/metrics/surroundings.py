"""What Flink knows of a running job beside its counters: its graph, checkpoints, watermarks, and its machines' cores."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from flink_client.jobs.job_graph import PARTITIONINGS
from flink_client.jobs.running import settings
from flink_client.rest.answers import flinks_answers, graph, numbers
from flink_client.rest.client import FlinkRest
from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.record import Checkpoints
from models.capacity.observed.surroundings import Surroundings, VertexLink
from models.dataflow import Partitioning
from models.errors import SluiceError

_WATERMARK: Final = "currentInputWatermark"
_LEAST_WATERMARK: Final = 0.0
"""Before the first watermark Flink reports the least number that there is."""


_NEVER_MS: Final = 2**53
"""From this interval on, a job takes no checkpoints by itself: Flink states the greatest number."""
_BACKEND: Final = "state.backend.type"
_COUNTING: Final = ("rocksdb", "forst")
"""State backends that can count accesses."""
_COUNTS: Final = "state.backend.{}.metrics.bytes-read, bytes-written, block-cache-hit and block-cache-miss: true"


def surroundings(
    rest: FlinkRest,
    job: str,
    last: JobCounts,
    *,
    lag_by_broker: bool,
    failures: Sequence[str] = (),
    silent: Mapping[str, Sequence[str]] | None = None,
) -> Surroundings:
    """Read them once, after the counters.

    Args:
        lag_by_broker: whether what waits was counted by the broker.
        failures: causes of the job's failures since it is observed, the newest first.
        silent: partitions of which nothing was read, by vertex.
    """
    with flinks_answers(rest.url):
        plan = rest.get(f"/jobs/{job}/plan")["plan"]
        _, edges = graph(plan)
        checkpoint, checkpointing = _checkpoint(rest, job), rest.get_if_there(f"/jobs/{job}/checkpoints/config")
        backend = _state_backend(rest, checkpointing).lower()
        return Surroundings(
            name=str(plan["name"]),
            id=job,
            edges=[
                VertexLink(e.upstream, e.downstream, PARTITIONINGS.get(e.ship_strategy, Partitioning.REBALANCE))
                for e in edges
            ],
            checkpoints=None if checkpoint is None else _summary(checkpoint),
            state_bytes={} if checkpoint is None else _state_bytes(rest, job, checkpoint),
            watermark_lag_s=_watermark_lag_s(rest, job, last),
            cores=_cores(rest, last),
            lag_by_broker=lag_by_broker,
            failures=failures,
            takes_checkpoints=checkpointing is not None and float(checkpointing["interval"]) < _NEVER_MS,
            counts_off=next((_COUNTS.format(one) for one in _COUNTING if one in backend), None),
            silent=silent or {},
        )


def _checkpoint(rest: FlinkRest, job: str) -> dict[str, Any] | None:
    """The last completed one; None without one, and where the job takes none."""
    try:
        latest = rest.get(f"/jobs/{job}/checkpoints")["latest"]
    except SluiceError:
        return None
    return None if latest.get("completed") is None else dict(latest["completed"])


def _state_backend(rest: FlinkRest, checkpointing: Mapping[str, Any] | None) -> str:
    """That of the job; where it takes no checkpoints, that of the cluster."""
    known = (checkpointing or {}).get("state_backend") or settings(rest).get(_BACKEND)
    return str(known or "")


def _summary(checkpoint: dict[str, Any]) -> Checkpoints:
    return Checkpoints(
        state_bytes=checkpoint["state_size"],
        duration_s=checkpoint["end_to_end_duration"] / 1000,
        age_s=max(time.time() - checkpoint["trigger_timestamp"] / 1000, 0.0),
    )


def _state_bytes(rest: FlinkRest, job: str, checkpoint: dict[str, Any]) -> dict[str, float]:
    """By vertex id; empty where Flink has forgotten the checkpoint's details."""
    try:
        tasks = rest.get(f"/jobs/{job}/checkpoints/details/{checkpoint['id']}")["tasks"]
    except SluiceError:
        return {}
    return {vertex: float(one["state_size"]) for vertex, one in tasks.items()}


def _watermark_lag_s(rest: FlinkRest, job: str, last: JobCounts) -> float | None:
    """Of the vertex whose watermark is the furthest behind the clock; None where no record has one."""
    lags = []
    for vertex in last.vertices:
        if vertex.is_source:
            continue
        marks = numbers(rest.get(f"/jobs/{job}/vertices/{vertex.id}/watermarks"))
        known = [mark for name, mark in marks.items() if name.endswith(_WATERMARK) and mark > _LEAST_WATERMARK]
        # The greatest number stands for the end of a bounded input.
        lags += [time.time() - mark / 1000 for mark in known if mark < 2**62]
    return max(lags, default=None)


def _cores(rest: FlinkRest, last: JobCounts) -> dict[str, float]:
    """Cores of the TaskManagers that are alone on their machine: those on one share what Flink reports for each."""
    listed = rest.get("/taskmanagers")["taskmanagers"]
    hosts = Counter(_host(one["path"]) for one in listed)
    alone = [one for one in listed if one["id"] in last.workers and hosts[_host(one["path"])] == 1]
    return {one["id"]: float(one["hardware"]["cpuCores"]) for one in alone}


def _host(path: str) -> str:
    """Of an address such as `pekko.tcp://flink@10.0.0.7:6122/user/rpc/taskmanager_0`."""
    return path.partition("@")[2].partition("/")[0].rpartition(":")[0] or path
