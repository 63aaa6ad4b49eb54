"""The simulator's prediction of a configuration's MST."""

from collections.abc import Mapping
from dataclasses import dataclass

from models.capacity.mst import MstSettings
from models.cluster import Cluster
from models.job import Job
from pipelines.measuring.estimate import search_mst
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Noise, Physics

WARMUP_RATE = 1e9
EXACT = {"iterations": 20, "sensitivity": 0.005, "warmup_rate": WARMUP_RATE}
"""Most iterations of the search, which are cheap on the simulator. Otherwise it takes the same steps as the real one, since
the records that buffers absorb in short windows depend on the rates before."""


@dataclass(frozen=True)
class Simulation:
    """The inputs of a simulation."""

    job: Job
    cluster: Cluster
    machine: Physics


def predicted_mst(
    simulation: Simulation, parallelism: Mapping[str, int], memory_mb: float, settings: MstSettings
) -> float:
    """MST on the simulator without noise, found as the real one; 0 if no rate is sustained."""
    quiet = simulation.machine.model_copy(update={"noise": Noise(run=0.0, task=0.0)})
    testbed = Simulator(simulation.cluster, (memory_mb,), quiet)
    configuration = Configuration(dict(parallelism), memory_mb)
    with testbed.deploy(simulation.job, configuration, run="prediction", seed=0) as run:
        search, _ = search_mst(run, settings.model_copy(update=EXACT))
    return search.mst or 0.0
