"""Placement: on which worker each task runs (CAPSys)."""

from models.placement.front import Front, pareto_front
from models.placement.minimum import Effort
from models.placement.place import count_plans, place
from models.placement.replan.moves import StablePlacement, fewest_moves
from models.placement.results import PlacementResult, Policy, Tuning
from models.placement.tuning import tune

__all__ = [
    "Effort",
    "Front",
    "PlacementResult",
    "Policy",
    "StablePlacement",
    "Tuning",
    "count_plans",
    "fewest_moves",
    "pareto_front",
    "place",
    "tune",
]
