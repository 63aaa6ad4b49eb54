"""Typed answers of Flink's REST interface."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import unescape
from typing import Any, Final

from models.errors import SluiceError

RUNNING: Final = "RUNNING"
FINISHED: Final = "FINISHED"
ENDED: Final = frozenset({"FAILED", "CANCELED", FINISHED, "SUSPENDED"})
MOST_TASKS: Final = 2**15
"""Most tasks of a vertex in Flink."""
_LONGEST_MESSAGE: Final = 600
_LONGEST_CAUSE: Final = 300


@contextmanager
def flinks_answers(url: str) -> Iterator[None]:
    """Turn answers that are not Flink's into a clear error."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as error:
        raise SluiceError(
            f"{url} does not answer as Flink's REST interface does ({type(error).__name__}: {error!s:.100}); check "
            f"that this is the address of a JobManager of Flink 1.18 or later"
        ) from error


@dataclass(frozen=True)
class Vertex:
    """An operator chain of a running job."""

    id: str
    name: str
    """In a job, Flink's name; in a plan, the description."""
    parallelism: int
    running: int
    """Number of its running tasks."""
    finished: int = 0
    """Number of its tasks that have read all of their input, which was bounded."""

    def __post_init__(self) -> None:
        if self.parallelism > MOST_TASKS:
            raise ValueError(f"a vertex has at most {MOST_TASKS} tasks, but got {self.parallelism!r:.40}")

    @property
    def is_done(self) -> bool:
        """Whether all of its tasks have finished."""
        return 0 < self.parallelism == self.finished


@dataclass(frozen=True)
class VertexEdge:
    """A connection of two vertices."""

    upstream: str
    downstream: str
    ship_strategy: str
    """Flink's word: FORWARD, REBALANCE, HASH, BROADCAST, RESCALE, ..."""


@dataclass(frozen=True)
class JobStatus:
    state: str
    vertices: tuple[Vertex, ...]
    """In topological order."""
    running_since_ms: int = 0
    """When the job last started to run, by Flink's clock: changes with a restart; 0 if it has not run yet."""

    @property
    def all_running(self) -> bool:
        """Whether the job runs, and all tasks that have not finished."""
        tasks_run = all(v.running + v.finished == v.parallelism for v in self.vertices)
        return self.state == RUNNING and tasks_run and any(v.running for v in self.vertices)


@dataclass(frozen=True)
class Subtask:
    index: int
    state: str
    attempt: int
    task_manager: str
    """Resource id of the TaskManager it runs on; empty while it has none."""
    running_s: float = 0.0
    """For how long it has run, by Flink's clock; 0 while it does not."""


@dataclass(frozen=True)
class Failure:
    """A failure of a job, after which it may have been started again."""

    time_ms: int
    """By Flink's clock."""
    cause: str
    """The root exception first, shortened."""


@dataclass(frozen=True)
class TaskManagerStatus:
    id: str
    slots: int
    free_slots: int
    managed_memory_bytes: int


def graph(plan: Mapping[str, Any]) -> tuple[tuple[Vertex, ...], tuple[VertexEdge, ...]]:
    """Vertices in topological order and the edges of a plan in Flink's JSON; it is empty until the job is scheduled."""
    nodes = {node["id"]: node for node in plan.get("nodes", ())}
    inputs = {name: [one["id"] for one in node.get("inputs", ())] for name, node in nodes.items()}
    vertices = tuple(
        Vertex(name, _plain(nodes[name]["description"]), nodes[name]["parallelism"], running=0)
        for name in TopologicalSorter(inputs).static_order()
    )
    edges = tuple(
        VertexEdge(one["id"], name, one["ship_strategy"])
        for name, node in nodes.items()
        for one in node.get("inputs", ())
    )
    return vertices, edges


def _plain(description: str) -> str:
    """A plan's description is HTML."""
    return unescape(description.replace("<br/>", " ")).strip()


def numbers(metrics: Iterable[Mapping[str, str]]) -> dict[str, float]:
    """Values by name; a gauge without a value reports NaN, and is left out."""
    values = {one["id"]: float(one["value"]) for one in metrics if "value" in one}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def shortened(stack_trace: str) -> str:
    """The messages of a stack trace, the root cause first, without the frames."""
    causes: list[list[str]] = [[]]
    for line in map(str.strip, stack_trace.splitlines()):
        if line.startswith("Caused by: "):
            causes.append([line.removeprefix("Caused by: ")])
        elif line and not line.startswith(("at ", "...", "<", "End of exception")):
            causes[-1].append(line)
    messages = [" ".join(lines)[:_LONGEST_CAUSE] for lines in reversed(causes) if lines]
    text = " | ".join(dict.fromkeys(messages))
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + " ..."
