"""The constants of the simulated machines and of the simulated Flink, each with its unit and its source.

`docs/explanation/simulator.md` says why each has its value. None of them is a property of a job; those are in its file.
"""

from typing import Final, Literal

from pydantic import Field, model_validator

from models.metrics import SAMPLE_INTERVAL_S
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio


class Flink(Format):
    """Flink's network memory and RocksDB's write buffer: defaults of the Flink documentation, sizes in MiB unless named."""

    network_fraction: Ratio = Field(0.1, description="memory.network.fraction, of the Flink memory.")
    network_min_mb: NonNegative = Field(64, description="memory.network.min")
    network_max_mb: NonNegative = Field(1024, description="memory.network.max")
    framework_mb: NonNegative = Field(256, description="memory.framework.heap.size + memory.framework.off-heap.size")
    buffer_bytes: PositiveInt = Field(32768, description="memory.segment-size, bytes.")
    buffers_per_channel: PositiveInt = Field(2, description="network.memory.buffers-per-channel")
    floating_buffers: PositiveInt = Field(8, description="network.memory.floating-buffers-per-gate")
    max_buffers_per_channel: PositiveInt = Field(10, description="network.memory.max-buffers-per-channel")
    most_waits_buffered_s: Positive | None = Field(
        None, description="Longest external waits of the records in the buffers before a task; null: of as many as fit."
    )
    write_buffer_mb: Positive = Field(64, description="state.backend.rocksdb.writebuffer.size")
    write_buffer_share: Ratio = Field(
        0.25,
        description="Most of the managed memory that the write buffer takes; it is a power of two (Justin, sect. 3).",
    )


class StateAccess(Format):
    """Costs of RocksDB and its device."""

    hit_latency_s: NonNegative = Field(2e-6, description="Read answered from the block cache; part of the job's cpu_s.")
    block_latency_s: NonNegative = Field(1e-4, description="Random read of one block from an idle SATA SSD.")
    block_bytes: Positive = Field(4096, description="Bytes of a block.")
    blocks_per_miss: Positive = Field(2.0, description="Sorted runs that a read looks into, each a block, on a miss.")
    most_io_load: Ratio = Field(
        0.95, description="Upper bound on the device utilisation in the formula of queueing delay."
    )
    reserved_mb: NonNegative = Field(
        48.0, description="Managed memory of a task with state that holds neither its write buffer nor cached blocks."
    )
    flush_s: NonNegative = Field(0.05, description="Time that a task waits when its write buffer is full, seconds.")
    write_amplification: Positive = Field(
        2.0, description="Device bytes per byte written: the flush, and one compaction into level 1."
    )
    cached_bytes_per_live_byte: Positive = Field(
        2.0, description="Cache that one live byte of the working set needs, obsolete versions and indexes included."
    )


class Noise(Format):
    """Noise between two runs of one configuration: standard deviations of the logarithm of the time per record."""

    run: NonNegative = Field(0.05, description="Deviation of a deployment, common to all tasks.")
    task: NonNegative = Field(0.02, description="Deviation of one task over time.")
    task_correlation_s: Positive = Field(15.0, description="Time constant of a task's deviation, seconds.")


class Rescaling(Format):
    """Stop with a savepoint, and start again from it."""

    restart_s: NonNegative = Field(
        30.0, description="From the end of the savepoint until all tasks run, without state to be restored, seconds."
    )
    stop_timeout_s: Positive = Field(
        600.0, description="execution.checkpointing.timeout: longest time to process the records in flight."
    )
    save_bytes_per_s: Positive | None = Field(
        1e8,
        description="Fastest rate at which one task writes its part of a savepoint, bytes/s; None: no savepoint is written.",
    )
    restore_bytes_per_s: Positive = Field(
        1e8, description="Fastest rate at which one task reads its part of a savepoint, bytes/s."
    )
    new_jvms: bool = Field(True, description="Whether TaskManagers restart, so that their code is compiled again.")
    drain_counts: bool = Field(
        True, description="Whether the job is down while its records in flight are processed; not if it is cancelled."
    )


IN_PLACE: Final = Rescaling(restart_s=0.7, save_bytes_per_s=None, new_jvms=False, drain_counts=False)
"""Flink's adaptive scheduler: cancel the tasks, and restore them from the last checkpoint in the same JVMs. Its downtime is
restart_s + state of the worker with the most / restore_bytes_per_s."""

REDEPLOYED: Final = Rescaling(restart_s=150.0)
"""The Kubernetes operator's upgrade of an application cluster, by which it rescales where Flink cannot in place (before 1.18):
stop with a savepoint, delete JobManager and TaskManagers, start a JobManager, which asks for TaskManagers, and restore."""
REDEPLOYED_COLD_DECAY_S: Final = 60.0
"""In pods that are limited to about a core, compiler threads share it with the tasks, and take half of it for minutes."""


class Physics(Format):
    """All constants of the simulator."""

    step_s: Positive = Field(0.1, description="Length of a step, seconds; divides the reporting interval.")
    deploy_s: NonNegative = Field(30.0, description="From the request until all tasks run, seconds.")
    cold_slowdown: NonNegative = Field(1.0, description="Extra time per record of cold code, as a factor.")
    cold_decay_s: Positive = Field(
        20.0, description="Time constant with which just-in-time compilation removes it, seconds."
    )
    full_load_slowdown: Ratio = Field(
        0.1, description="Share of its speed that a core loses when all cores of its worker are busy."
    )
    source_burst_s: NonNegative | Literal["all"] = Field(
        1.0,
        description="Time whose records a rate-limited source may catch up with, seconds; `all`: since the rate was set.",
    )
    stamped: Literal["arrival", "reading"] = Field(
        "arrival",
        description="When a record of the log gets the time that windows use: when it arrives in the log (event time), or "
        "when it is read (processing time, and generators that stamp what they emit).",
    )
    least_record_bytes: Positive = Field(24.0, description="Least size of a record in a network buffer, bytes.")
    least_hot_records: Positive = Field(
        64.0, description="Keys that are hot for fewer records are treated like the others."
    )
    flink: Flink = Flink()
    state: StateAccess = StateAccess()
    noise: Noise = Noise()
    rescaling: Rescaling = Rescaling()

    @model_validator(mode="after")
    def _check(self) -> "Physics":
        steps = SAMPLE_INTERVAL_S / self.step_s
        if abs(steps - round(steps)) > 1e-9 or steps < 1:
            raise ValueError(
                f"step_s must divide the reporting interval of {SAMPLE_INTERVAL_S:g} s, but got {self.step_s:g}"
            )
        return self

    @property
    def steps_per_interval(self) -> int:
        """Steps in one reporting interval."""
        return round(SAMPLE_INTERVAL_S / self.step_s)

    def ideal(self) -> "Physics":
        """Without noise, cold start, shared clock frequency and waits for flushes: results that can be checked by hand."""
        return self.model_copy(
            update={
                "noise": Noise(run=0.0, task=0.0),
                "cold_slowdown": 0.0,
                "full_load_slowdown": 0.0,
                "state": self.state.model_copy(update={"flush_s": 0.0}),
            }
        )
