"""Why an interval is wide."""

import numpy as np

from models.capacity.doubt import why_wide
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.selection import select


def test_laws_that_disagree_are_named_with_what_would_settle_it(published):
    model = select(published("q5", 22)).model
    reason = why_wide(model, 65536, 1079)
    assert reason is not None
    assert reason.startswith("the observations do not determine the law: they end at 48 task slots, and with 1,079 ")
    assert reason.count("expects") == 1 and " skewed (" in reason and " even (" in reason
    assert reason.endswith("measuring more than 48 slots narrows the interval")


def test_inside_what_was_measured_there_is_nothing_to_say(published):
    assert why_wide(select(published("q5", 22)).model, 65536, 40) is None


def test_a_forced_law_is_not_doubted(published):
    assert why_wide(select(published("q5", 14), forced="log").model, 65536, 1079) is None


def test_laws_that_agree_leave_no_doubt():
    slots = np.tile(np.arange(4.0, 49.0, 4.0), 3)
    model = select(Dataset(np.full(len(slots), 8192.0), slots, 1e4 * slots)).model
    assert why_wide(CapacityModel.model_validate(model.model_dump()), 8192.0, 60) is None
