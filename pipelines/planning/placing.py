"""A worker for each task of a scaling: by the job's threshold table, else by tuning the thresholds (CAPSys section 5.2)."""

import time

from models.cluster import Cluster
from models.placement import tune
from models.placement.shared.place import tune_shared
from models.planning.assembling import TunedPlacement
from models.planning.inputs import MeasuredOperators
from models.planning.parallelism import Scaling
from models.planning.resources import check_slots
from pipelines.store.thresholds import stored_tuning
from pipelines.store.workspace import Workspace


def tuned_placement(
    scaling: Scaling, rate: float, cluster: Cluster, tuned: tuple[Workspace, MeasuredOperators] | None = None
) -> TunedPlacement:
    """Place the tasks within the least thresholds.

    Args:
        rate: target, records/s, for the message if the cluster is too small.
        tuned: the workspace with the threshold table, and the inputs of its rows; if absent, or where slots are
            shared, the thresholds are tuned now.

    Raises:
        Infeasible: the cluster has fewer slots than the plan takes.
    """
    check_slots(scaling.slots, rate, cluster)
    if (vertices := scaling.shared) is not None:
        found = tune_shared(vertices, cluster, clock=time.monotonic)
        assert found.tuning is not None  # CAPS tunes its thresholds
        return TunedPlacement(tuning=found.tuning, from_table=False, shared=found)
    stored = None if tuned is None else stored_tuning(*tuned, scaling, cluster)
    tuning = stored or tune(scaling.dataflow, cluster, clock=time.monotonic)
    return TunedPlacement(tuning=tuning, from_table=stored is not None)
