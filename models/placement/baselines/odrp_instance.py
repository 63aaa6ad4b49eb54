"""The input of ODRP: the work of each operator, its allowed numbers of tasks, and the traffic between operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.cluster import Cluster
from models.dataflow import Dataflow, topological_order
from models.errors import InvalidInput
from models.job import Job, records_in_per_source_record
from models.placement.problem import Problem


@dataclass(frozen=True)
class Stream:
    """An edge i -> j, every task of i sending to every task of j."""

    upstream: int
    downstream: int
    bytes_per_s: float
    """Sent by all tasks of i together."""


@dataclass(frozen=True)
class OdrpInstance:
    """The input of ODRP for one job."""

    operators: tuple[str, ...]
    work: tuple[float, ...]
    """e_i lambda_i: cores that the operator's tasks need together."""
    choices: tuple[tuple[int, ...], ...]
    """K_i: numbers of tasks that operator i may have, ascending."""
    memory_mb: tuple[float, ...]
    streams: tuple[Stream, ...]
    order: tuple[int, ...]
    """Operators so that every stream points forward."""

    def __post_init__(self) -> None:
        fed = {s.downstream for s in self.streams}
        sources = [name for i, name in enumerate(self.operators) if i not in fed]
        if len(sources) != 1:
            raise InvalidInput(
                f"ODRP needs a query with one source, but this one has {len(sources)}: {', '.join(sources[:5])}; "
                "use another policy"
            )

    @classmethod
    def of_dataflow(cls, dataflow: Dataflow, cluster: Cluster) -> "OdrpInstance":
        """The restricted form: the parallelism is given, cpu is e_i lambda_i / p_i."""
        problem = Problem.of(dataflow, cluster)
        edges, p = problem.edges, problem.parallelism
        sent = (edges.load * p[edges.upstream]).tolist()
        ends = zip(edges.upstream.tolist(), edges.downstream.tolist(), sent, strict=True)
        return cls(
            operators=problem.operators,
            work=tuple((problem.loads[0] * p).tolist()),
            choices=tuple((k,) for k in p.tolist()),
            memory_mb=tuple(problem.memory_mb.tolist()),
            streams=tuple(Stream(i, j, load) for i, j, load in ends),
            order=_order(problem.operators, dataflow),
        )

    @classmethod
    def of_job(cls, job: Job, rate: float, true_rate_per_task: Mapping[str, float], most_tasks: int) -> "OdrpInstance":
        """The joint form: each operator may have 1 to `most_tasks` tasks, or its own maximum if that is less.

        Args:
            rate: target, records/s of the source.
            true_rate_per_task: records in (sources: out) per second of useful time of one task, by operator.
        """
        ratio, names = records_in_per_source_record(job), tuple(o.name for o in job.operators)
        streams = []
        for edge in job.edges:
            up = job.operator(edge.upstream)
            sent = rate * ratio[up.name] * up.selectivity * edge.share * up.cost.bytes_out
            streams.append(Stream(names.index(edge.upstream), names.index(edge.downstream), sent))
        most = [min(most_tasks, o.max_parallelism or most_tasks) for o in job.operators]
        return cls(
            operators=names,
            work=tuple(rate * ratio[name] / true_rate_per_task[name] for name in names),
            choices=tuple(tuple(range(1, m + 1)) for m in most),
            memory_mb=(0.0,) * len(names),
            streams=tuple(streams),
            order=tuple(names.index(name) for name in job.order),
        )


def _order(operators: Sequence[str], dataflow: Dataflow) -> tuple[int, ...]:
    return tuple(operators.index(name) for name in topological_order(operators, dataflow.edges))
