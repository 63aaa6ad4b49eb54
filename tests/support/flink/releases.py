"""The releases of Flink as parameters of a fixture: CI runs those of the newest, `make test-all` the others, too."""

import pytest

from testbeds.flink.local.distribution import FLINK, RELEASES

NEWEST_IN_CI = [
    pytest.param(one, id=one.line, marks=pytest.mark.long if one == FLINK else ()) for one in RELEASES.values()
]
