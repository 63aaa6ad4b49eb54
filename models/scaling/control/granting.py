"""The part of a decision that fits an autopilot's limits, where tasks of different vertices may share a slot.

With Flink's default, all vertices are in one slot sharing group, and a slot holds a task of each: a job takes as many slots as
its widest vertex has tasks. Groups share the slots as operators do in `models.scaling.limits`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.scaling.control.limits import ControlLimits
from models.scaling.limits import Granted, within


@dataclass(frozen=True)
class TaskBounds:
    """What a job may take."""

    slots: int
    """Task slots that it may use."""
    why_slots: str
    """What limits them, in words."""
    least: Mapping[str, int]
    most: Mapping[str, int]
    """Tasks of each vertex."""
    groups: Mapping[str, str]
    """Slot sharing group of each vertex."""

    @classmethod
    def of(
        cls, limits: ControlLimits, slots_there: int, max_parallelism: Mapping[str, int], groups: Mapping[str, str]
    ) -> "TaskBounds":
        """The tightest of the cluster's slots, the limits, and what each vertex may have at most."""
        slots, why = slots_there, "slots there"
        if limits.most_slots is not None and limits.most_slots < slots:
            slots, why = limits.most_slots, "slots allowed"
        if limits.dollars_per_hour is not None and limits.price_per_slot_hour is not None:
            paid = math.floor(limits.dollars_per_hour / limits.price_per_slot_hour * (1 + 1e-9))
            if paid < slots:
                slots, why = paid, f"slots for ${limits.dollars_per_hour:g} an hour"
        most = {name: min(own, limits.most_tasks or own, max(slots, 1)) for name, own in max_parallelism.items()}
        least = {name: min(limits.least_tasks, own) for name, own in most.items()}
        return cls(slots, why, least, most, groups)

    def slots_of(self, tasks: Mapping[str, int]) -> int:
        """Slots that these tasks take."""
        return sum(self._widths(tasks).values())

    @property
    def most_in_all(self) -> int:
        """Tasks of all vertices together that fit at most."""
        members: dict[str, int] = {}
        for name in self.most:
            members[self.groups[name]] = members.get(self.groups[name], 0) + 1
        return self.slots * max(members.values())

    def grant(self, wanted: Mapping[str, int], running: Mapping[str, int]) -> Granted:
        """The tasks that vertices get of those wanted; a vertex that is left out keeps its tasks.

        Raises:
            Infeasible: the vertices that do not grow take more than the slots that the job may use.
        """
        asked = {
            name: min(max(wanted.get(name, tasks), self.least.get(name, 1)), self.most.get(name, self.slots))
            for name, tasks in running.items()
        }
        widths = within(self._widths(asked), self._widths(running), self.slots, {})
        tasks = {name: min(count, widths.parallelism[self.groups[name]]) for name, count in asked.items()}
        return Granted(tasks, self._note({**running, **wanted}, tasks))

    def _widths(self, tasks: Mapping[str, int]) -> dict[str, int]:
        widths: dict[str, int] = {}
        for name, count in tasks.items():
            widths[self.groups[name]] = max(widths.get(self.groups[name], 0), count)
        return widths

    def _note(self, wanted: Mapping[str, int], granted: Mapping[str, int]) -> str | None:
        changed = [f"{name} {granted[name]} of {wanted[name]}" for name in granted if granted[name] != wanted[name]]
        if not changed:
            return None
        needed = self.slots_of(wanted)
        why = f"{needed} slots wanted and {self.slots} {self.why_slots}" if needed > self.slots else "limits on tasks"
        return f"{why}, so granted: {', '.join(changed[:4])}{', ...' if len(changed) > 4 else ''}"
