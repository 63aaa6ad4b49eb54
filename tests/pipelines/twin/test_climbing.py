"""What was measured decides whether there is a twin at all."""

import pytest

from models.errors import SluiceError
from pipelines.twin.climbing import check_measured
from pipelines.twin.rungs import Rung


def rung(slots: int, mst: float, measured: float | None) -> Rung:
    return Rung(task_slots=slots, memory_mb=1024.0, parallelism={"sink": slots}, mst=mst, measured_mst=measured)


def test_a_factor_that_changes_from_size_to_size_leaves_no_twin() -> None:
    # A Kafka job whose tasks sleep for 1 ms a record, when the simulator took their waiting for a lack of cores.
    rungs = [rung(4, 2218, 880), rung(5, 3366, 1715), rung(8, 3209, 4140), rung(18, 3282, None)]
    with pytest.raises(SluiceError, match=r"0\.8 times what was measured with 8 task slots and 2\.5 times with 4"):
        check_measured(rungs)


def test_a_factor_that_hardly_changes_is_corrected() -> None:
    check_measured([rung(4, 2218, 880), rung(5, 3366, 1715), rung(8, 8000, 4140), rung(18, 3282, None)])
    check_measured([rung(4, 0, 880), rung(5, 100, None)])
