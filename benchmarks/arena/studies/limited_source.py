"""A run with rate-limited sources, as in most papers, instead of the arena's durable log.

Records not emitted in time are dropped, so a job that was too small has nothing to catch up with once it is large enough.
"""

import math

import numpy as np
import pyarrow as pa

from models.closing import Closing
from models.cluster import Cluster
from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S, Activity
from testbeds.protocol import Configuration, ElasticRun, Limits, MeasuredWindow, Rescale, Served
from testbeds.simulator import Simulator


class LimitedSources:
    """The simulator, with such sources."""

    name = "simulator, sources limited in rate"

    def __init__(self, cluster: Cluster) -> None:
        self._simulator = Simulator(cluster)

    @property
    def limits(self) -> Limits:
        return self._simulator.limits

    @property
    def cluster(self) -> Cluster:
        return self._simulator.cluster

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> "LimitedRun":
        return LimitedRun(self._simulator.deploy(job, configuration, run=run, seed=seed), job)


class LimitedRun(Closing):
    """Serves by injecting; a rescale begins at its request, in whole reporting intervals."""

    def __init__(self, run: ElasticRun, job: Job) -> None:
        self._run = run
        self._sources = [o.name for o in job.sources]
        self._stateful = {o.name for o in job.operators if o.state is not None}
        self._down_s = 0.0

    @property
    def elapsed_s(self) -> float:
        return self._run.elapsed_s

    @property
    def configuration(self) -> Configuration:
        return self._run.configuration

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        return self._run.inject(rate, seconds, phase)

    def rescale(self, configuration: Configuration) -> Rescale:
        done = self._run.rescale(configuration)
        self._down_s = SAMPLE_INTERVAL_S * math.ceil(done.downtime_s / SAMPLE_INTERVAL_S)
        return Rescale(self._down_s, done.state_mb)

    def serve(self, rate: float, seconds: float) -> Served:
        down_s = min(self._down_s, seconds)
        self._down_s -= down_s
        up_s = seconds - down_s
        arrived = np.full(round(seconds / SAMPLE_INTERVAL_S), rate * SAMPLE_INTERVAL_S)
        read, activity = np.zeros(len(arrived)), {}
        if up_s > 0:
            samples = self._run.inject(rate, up_s, "observe").samples
            activity = {name: self._activity(samples, name, up_s) for name in self.configuration.parallelism}
            emitted = samples.filter(pa.compute.is_in(samples["operator"], pa.array(self._sources)))
            by_time = emitted.group_by("time_s").aggregate([("records_out", "sum")]).sort_by("time_s")
            read[-by_time.num_rows :] = by_time["records_out_sum"].to_numpy()
        return Served(seconds, up_s, arrived, read, np.zeros(len(arrived)), activity)

    def _activity(self, samples: pa.Table, name: str, seconds: float) -> Activity:
        """Sums over the tasks' samples; queues and the size of state are not in them."""
        own = samples.filter(pa.compute.equal(samples["operator"], name))
        task = own["task"].to_numpy()

        def total(column: str, weight: np.ndarray | None = None) -> np.ndarray:
            values = np.nan_to_num(own[column].to_numpy(zero_copy_only=False).astype(float))
            return np.bincount(task, values if weight is None else values * weight)

        accesses = own["cache_hits"].to_numpy() + own["cache_misses"].to_numpy()
        none = np.zeros(self.configuration.parallelism[name])
        return Activity(
            seconds=seconds,
            records_in=total("records_in"),
            records_out=total("records_out"),
            busy_s=total("busy_s"),
            backpressured_s=total("backpressured_s"),
            idle_s=total("idle_s"),
            cpu_s=total("cpu_s"),
            cache_hits=total("cache_hits"),
            cache_misses=total("cache_misses"),
            state_time_s=total("state_latency_s", accesses),
            input_queue_share=none,
            lag_records=none,
            state_bytes=none,
            keeps_state=name in self._stateful,
        )

    def close(self) -> None:
        self._run.close()
