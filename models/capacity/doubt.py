"""Why an interval of the MST is wide, in words."""

from typing import Final

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.curves import DrawnCurves
from models.wording import amount

WORTH_SAYING: Final = 2.0
"""Ratio of the highest to the lowest expectation of the laws."""
_LEAST_WEIGHT: Final = 0.05
"""Laws with less are not named."""


def why_wide(model: CapacityModel, memory_mb: float, task_slots: int) -> str | None:
    """What the observations leave open at this budget, and what would settle it; None where the laws agree."""
    curves = [c.predicts for c in model.components if isinstance(c.predicts, DrawnCurves)]
    if not curves:
        return None
    most = max(c.most_slots for c in curves)
    expected = {
        c.predicts.law: c.predicts.median(memory_mb, task_slots)
        for c in model.components
        if isinstance(c.predicts, DrawnCurves) and c.weight >= _LEAST_WEIGHT
    }
    if task_slots <= most or len(expected) < 2:
        return None
    lowest, highest = min(expected, key=expected.__getitem__), max(expected, key=expected.__getitem__)
    if expected[highest] < WORTH_SAYING * expected[lowest]:
        return None
    weights = model.weights
    return (
        f"the observations do not determine the law: they end at {most} task slots, and with {task_slots:,} "
        f"{lowest} ({weights[lowest]:.0%}) expects {amount(expected[lowest])} records/s and {highest} ({weights[highest]:.0%}) "
        f"{amount(expected[highest])}; measuring more than {most} slots narrows the interval"
    )
