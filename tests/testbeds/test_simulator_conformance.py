import pytest

from testbeds import conformance, protocol
from testbeds.simulator import Simulator


class TestSimulator(conformance.TestbedConformance):
    @pytest.fixture
    def testbed(self) -> protocol.Testbed:
        return Simulator()
