"""Capacity models made by hand, for tests that need one whose answers are known."""

import math

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.curves import LawCurves
from models.capacity.growth.regressions import Regression


def regression(law: str, memory: float, slots: float, intercept: float, error: float = 0.0) -> Regression:
    """With coefficients that were fitted to nothing, and the same normal error everywhere, records/s."""
    return Regression(
        law=law,  # type: ignore[arg-type]
        memory=memory,
        slots=slots,
        intercept=intercept,
        mean=(0.0, 0.0),
        covariance=((0.0, 0.0), (0.0, 0.0)),
        residual_variance=error**2,
        degrees_of_freedom=1_000_000,
        observations=1_000_000_000,
    )


def line(slots: float, intercept: float = 0.0, error: float = 0.0) -> CapacityModel:
    """MST = slots x task slots + intercept."""
    return CapacityModel.of(regression("linear", 0.0, slots, intercept, error))


def one_curve(**changes: object) -> LawCurves:
    """1e4 records/s a slot, measured from 4 to 48 slots with 8,192 MiB."""
    fields: dict[str, object] = {
        "law": "linear",
        "fewest_slots": 4,
        "most_slots": 48,
        "memory_mb": 8192.0,
        "level": (math.log(4e4),),
        "memory_effect": (0.5,),
        "noise": (0.1,),
        "drift": (1.0,),
        "shape": ((0.25,),),
    }
    return LawCurves.model_validate(fields | changes)
