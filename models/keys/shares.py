"""What is known of the keys of an operator's input: from recorded streams, or from what its tasks got while measuring."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from models.keys import bounds
from models.keys.distribution import KeyDistribution
from models.keys.groups import folded, key_groups, task_counts
from models.plan.parts import Interval
from models.schema import Format, Name, NonNegative, PositiveInt


class FullestShare(Format):
    """The share of the fullest of so many tasks."""

    parallelism: PositiveInt = Field(description="Tasks.")
    share: Interval = Field(description="Its share of the records; low and high are equal where it is known exactly.")


class KeyedInput(Format):
    """What is known of the keys of an operator's input."""

    operator: Name = Field(description="The operator that the records are hash-partitioned to.")
    source: Literal["recording", "samples"] = Field(
        description="recording: exact, from recorded streams; samples: bounds, from what tasks got while measuring."
    )
    distribution: KeyDistribution | None = Field(None, description="Of the recorded streams; null without one.")
    groups: tuple[int, ...] = Field((), description="Records of each key group in the recorded streams.")
    seen: tuple[tuple[NonNegative, ...], ...] = Field(
        (), description="Records of each task while measuring, a list for each measurement run."
    )
    fullest: tuple[FullestShare, ...] = Field((), description="The fullest task's share, by parallelism.")

    def fullest_share(self, parallelism: int, total: int | None = None) -> Interval:
        """The fullest task's share of the records at any parallelism.

        Args:
            total: key groups that the job states; None: Flink's default for the parallelism.

        Raises:
            InvalidInput: there are fewer key groups than tasks.
        """
        if not self.groups:
            return bounds.fullest_share(self.seen, parallelism, total)
        of_groups = folded(np.array(self.groups), key_groups(parallelism) if total is None else total)
        share = float(task_counts(of_groups, parallelism).max() / of_groups.sum())
        return Interval(value=share, low=share, high=share, probability=1.0)

    def with_shares(self, parallelism: Sequence[int], total: int | None) -> "KeyedInput":
        """The same with the fullest task's share at each parallelism."""
        fullest = (FullestShare(parallelism=p, share=self.fullest_share(p, total)) for p in parallelism)
        return self.model_copy(update={"fullest": tuple(fullest)})
