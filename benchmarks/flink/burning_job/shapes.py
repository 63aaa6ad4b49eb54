"""The shapes of the job: its vertices, their tasks and costs, and the slots that they share."""

from dataclasses import dataclass
from typing import Final

from models.cluster import Cluster

WORKERS, CORES, MEMORY_MB = 4, 0.35, 1024.0


@dataclass(frozen=True)
class Vertex:
    """A vertex of the program."""

    name: str
    tasks: int
    rounds: int
    """Of SHA-256 for each record."""
    inputs: str = ""

    def argument(self, tasks: int) -> str:
        return f"{self.name}={tasks}={self.rounds}={self.inputs}"


@dataclass(frozen=True)
class Shape:
    """A job, and the slots of each TaskManager."""

    name: str
    slots: int
    vertices: tuple[Vertex, ...]

    @property
    def cluster(self) -> Cluster:
        fields = {"name": self.name, "count": WORKERS, "slots": self.slots, "cores": CORES, "memory_mb": MEMORY_MB}
        return Cluster.model_validate(fields)

    @property
    def parallelism(self) -> dict[str, int]:
        return {v.name: v.tasks for v in self.vertices}


SHAPES: Final = {
    one.name: one
    for one in (
        # The shape, tasks and proportions of CAPSys' Q3-inf in `flink/placement.py`.
        Shape(
            "inference",
            2,
            (
                Vertex("frames", 3, 900),
                Vertex("blur", 5, 8500, "frames"),
                Vertex("shrink", 4, 2400, "blur"),
                Vertex("classify", 3, 3300, "shrink"),
                Vertex("archive", 1, 100, "classify"),
            ),
        ),
        # Two narrow, heavy vertices beside wide, light ones, on TaskManagers of one slot.
        Shape(
            "branches",
            1,
            (
                Vertex("orders", 4, 1500),
                Vertex("enrich", 4, 3000, "orders"),
                Vertex("score", 2, 4500, "enrich"),
                Vertex("match", 2, 3400, "enrich"),
                Vertex("notify", 1, 400, "score,match"),
            ),
        ),
    )
}
