"""How many records the network buffers of an edge hold (Flink: network memory tuning).

The input gate of a task owns 2 buffers for each channel and 8 floating ones; the output of a task to n channels owns
2 n + 8, of which one channel takes at most 10. A worker's network memory bounds them all.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from testbeds.simulator.settings import Flink

BYTES_PER_MB = 2**20


def pool(channels: int, flink: Flink) -> int:
    """Buffers of an input gate or a result partition with this many channels."""
    return channels * flink.buffers_per_channel + flink.floating_buffers


def scale_of_workers(pools: Mapping[int, Sequence[int]], network_mb: Sequence[float], flink: Flink) -> np.ndarray:
    """Share of the wanted buffers that each worker's network memory provides, shape (workers,), at most 1.

    Args:
        pools: worker -> sizes of the buffer pools on it.
        network_mb: network memory of each worker, MiB; infinite where it is not a constraint.
    """
    scale = np.ones(len(network_mb))
    for worker, sizes in pools.items():
        wanted = sum(sizes) * flink.buffer_bytes / BYTES_PER_MB
        if wanted > network_mb[worker]:
            scale[worker] = network_mb[worker] / wanted
    return scale


def room_per_task(
    up_scale: np.ndarray, down_scale: np.ndarray, channels_out: int, record_bytes: float, flink: Flink
) -> np.ndarray:
    """Records in flight to each downstream task when it is the fullest, shape of `down_scale`.

    Args:
        up_scale: share of its wanted buffers that each upstream task with a channel to it has.
        down_scale: the same of each downstream task.
        channels_out: channels of one upstream task.
    """
    sent = min(flink.max_buffers_per_channel, pool(channels_out, flink)) * up_scale.sum()
    buffers = sent + pool(len(up_scale), flink) * down_scale
    return np.asarray(buffers * flink.buffer_bytes / record_bytes)


def room_of_edge(up_scale: np.ndarray, down_scale: np.ndarray, record_bytes: float, flink: Flink) -> float:
    """Records that all buffers of an edge from all tasks to all tasks hold together."""
    sent = pool(len(down_scale), flink) * up_scale.sum()
    received = pool(len(up_scale), flink) * down_scale.sum()
    return float((sent + received) * flink.buffer_bytes / record_bytes)
