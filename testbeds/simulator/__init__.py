"""The embedded testbed: a vectorised simulator of a Flink-like stream processor. See docs/explanation/simulator.md."""

from testbeds.simulator.settings import Flink, Noise, Physics, Rescaling, StateAccess
from testbeds.simulator.simulator import Simulator, streambed_cluster

__all__ = ["Flink", "Noise", "Physics", "Rescaling", "Simulator", "StateAccess", "streambed_cluster"]
