"""Edges and gates of a deployment: shares of the receivers, sizes of buffers, traffic between workers."""

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from models.dataflow import Edge, Partitioning
from models.errors import InvalidInput
from models.job import Job
from models.keys.groups import key_groups
from testbeds.simulator.kernel import arrays
from testbeds.simulator.kernel.arrays import EDGE, GATE
from testbeds.simulator.layout.buffers import pool, room_of_edge, room_per_task, scale_of_workers
from testbeds.simulator.layout.keys import shares
from testbeds.simulator.settings import Physics


class Wiring:
    """The edges of a job between placed tasks."""

    def __init__(
        self,
        job: Job,
        parallelism: Mapping[str, int],
        workers: Mapping[str, np.ndarray],
        network_mb: Sequence[float],
        physics: Physics,
    ) -> None:
        """Args:
        workers: operator -> worker of each of its tasks, int64[tasks].
        network_mb: network memory of each worker, MiB; infinite where it is not a constraint.
        """
        self._job, self._tasks, self._workers, self._physics = job, parallelism, workers, physics
        self._edges = [e for name in job.order for e in job.downstream_edges(name)]
        self._shares = [self._gate_shares(e) for e in self._edges]
        self._buffer_scale = self._scale_buffers(network_mb)

    def out_of(self, name: str) -> list[int]:
        """Numbers of an operator's outgoing edges."""
        return [i for i, e in enumerate(self._edges) if e.upstream == name]

    def into(self, name: str) -> list[int]:
        """Numbers of an operator's incoming edges."""
        return [i for i, e in enumerate(self._edges) if e.downstream == name]

    def copies(self, name: str) -> float:
        """Records sent per record out of an operator, over all edges."""
        return sum(self._edges[i].share * self._copies(self._edges[i]) for i in self.out_of(name))

    def edges_and_gates(self) -> tuple[np.ndarray, np.ndarray]:
        """The tables EDGE and GATE."""
        edges = np.zeros(len(self._edges), EDGE)
        gates = np.zeros(sum(len(s) for s in self._shares), GATE)
        first = 0
        for row, edge, share in zip(edges, self._edges, self._shares, strict=True):
            row["first"], row["end"] = first, first + len(share)
            row["kind"], row["share"], row["copies"] = self._kind(edge), edge.share, self._copies(edge)
            row["hot_share"], row["hot_records"], row["hot_steps"] = self._hot_keys(edge)
            row["upstream"] = self._job.order.index(edge.upstream)
            row["window"] = self._window_before(edge) if row["hot_steps"] > 0 else -1
            row["key_groups"], row["key_seed"] = self._groups(edge.downstream), self._key_seed(edge.downstream)
            per_task, row["room"] = self._rooms(edge)
            gates["room"][first : row["end"]] = per_task
            gates["share"][first : row["end"]] = share
            first = row["end"]
        return edges, gates

    def remote_bytes(self, name: str) -> np.ndarray:
        """Bytes of one record out of each task that go to other workers, float64[tasks] (CAPSys Eq. 8, by shares)."""
        copies = np.zeros(self._tasks[name])
        for i in self.out_of(name):
            edge = self._edges[i]
            apart = self._workers[name][:, None] != self._workers[edge.downstream][None, :]
            one_to_one = self._kind(edge) == arrays.FORWARD
            copies += edge.share * (np.diag(apart) if one_to_one else apart @ self._shares[i])
        return copies * self._job.operator(name).cost.bytes_out

    def key_bytes(self, name: str) -> np.ndarray:
        """State of the active keys of each task, bytes, float64[tasks]."""
        operator, tasks = self._job.operator(name), self._tasks[name]
        if operator.state is None or operator.keys is None:
            return np.zeros(tasks)
        own = shares(operator.keys, tasks, self._groups(name), self._key_seed(name))
        return operator.state.bytes_per_key * operator.keys.distinct * own

    def _kind(self, edge: Edge) -> int:
        """A forward edge between operators of different parallelism becomes a rebalance, as Flink does it."""
        if edge.partitioning is Partitioning.BROADCAST:
            return arrays.BROADCAST
        equal = self._tasks[edge.upstream] == self._tasks[edge.downstream]
        return arrays.FORWARD if edge.partitioning is Partitioning.FORWARD and equal else arrays.SHARED

    def _copies(self, edge: Edge) -> int:
        return self._tasks[edge.downstream] if edge.partitioning is Partitioning.BROADCAST else 1

    def _groups(self, name: str) -> int:
        tasks = self._tasks[name]
        groups = self._job.key_groups or key_groups(tasks)
        hashed = any(e.partitioning is Partitioning.HASH for e in self._job.upstream_edges(name))
        if hashed and tasks > groups:
            raise InvalidInput(
                f"operator {name!r} cannot have more tasks than key groups, but has {tasks} tasks and {groups} key groups; "
                "raise the job's key_groups (Flink's maximum parallelism) or ask for fewer tasks"
            )
        return groups

    def _key_seed(self, name: str) -> int:
        """Per operator, not per edge: equal keys of two inputs meet at one task."""
        return zlib.crc32(f"{self._job.name}/{name}".encode())

    def _gate_shares(self, edge: Edge) -> np.ndarray:
        tasks = self._tasks[edge.downstream]
        if edge.partitioning is Partitioning.BROADCAST:
            return np.ones(tasks)
        if edge.partitioning is Partitioning.HASH:
            keys = self._job.operator(edge.downstream).keys
            return shares(keys, tasks, self._groups(edge.downstream), self._key_seed(edge.downstream))
        return np.full(tasks, 1.0 / tasks)

    def _hot_keys(self, edge: Edge) -> tuple[float, float, int]:
        """Share of hot records; records or steps after which another key is hot (0 for the one that does not apply)."""
        keys = self._job.operator(edge.downstream).keys
        if edge.partitioning is not Partitioning.HASH or keys is None or keys.hot_share == 0:
            return 0.0, 0.0, 0
        if keys.hot_period_s is not None:
            return keys.hot_share, 0.0, max(round(keys.hot_period_s / self._physics.step_s), 1)
        period = keys.hot_period_records or 0.0
        if period * keys.hot_share < self._physics.least_hot_records:
            return 0.0, 0.0, 0
        return keys.hot_share, period, 0

    def _window_before(self, edge: Edge) -> int:
        """The nearest upstream operator whose windows fire; -1 without one."""
        reached = [edge.upstream]
        for name in reached:
            if self._job.operator(name).window is not None:
                return self._job.order.index(name)
            reached += [e.upstream for e in self._job.upstream_edges(name)]
        return -1

    def _rooms(self, edge: Edge) -> tuple[np.ndarray, float]:
        """Capacity in records of the buffers to each downstream task, and of all buffers of the edge."""
        size = max(self._job.operator(edge.upstream).cost.bytes_out, self._physics.least_record_bytes)
        up = self._buffer_scale[self._workers[edge.upstream]]
        down = self._buffer_scale[self._workers[edge.downstream]]
        flink = self._physics.flink
        if self._kind(edge) == arrays.FORWARD:
            pairs = [room_per_task(up[i : i + 1], down[i : i + 1], 1, size, flink) for i in range(len(down))]
            rooms, whole = np.concatenate(pairs), float(np.sum(pairs))
        else:
            rooms, whole = room_per_task(up, down, len(down), size, flink), room_of_edge(up, down, size, flink)
        most = self._most_buffered(edge.downstream)
        return np.minimum(rooms, most), min(whole, most * len(down))

    def _most_buffered(self, name: str) -> float:
        """Records that may be in the buffers before one task, whatever their size."""
        longest_s, wait_s = self._physics.flink.most_waits_buffered_s, self._job.operator(name).cost.external_wait_s
        return np.inf if longest_s is None or wait_s == 0 else max(longest_s / wait_s, 1.0)

    def _scale_buffers(self, network_mb: Sequence[float]) -> np.ndarray:
        pools: dict[int, list[int]] = {}
        for edge in self._edges:
            one_to_one = self._kind(edge) == arrays.FORWARD
            for end, other in ((edge.upstream, edge.downstream), (edge.downstream, edge.upstream)):
                size = pool(1 if one_to_one else self._tasks[other], self._physics.flink)
                for worker in self._workers[end]:
                    pools.setdefault(int(worker), []).append(size)
        return scale_of_workers(pools, network_mb, self._physics.flink)
