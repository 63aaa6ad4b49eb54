import pytest

from testbeds import conformance, elastic_conformance, protocol
from testbeds.simulator import Simulator


class TestSimulator(conformance.TestbedConformance):
    @pytest.fixture
    def testbed(self) -> protocol.Testbed:
        return Simulator()


class TestElasticSimulator(elastic_conformance.ElasticConformance):
    @pytest.fixture
    def testbed(self) -> protocol.Testbed:
        return Simulator()
