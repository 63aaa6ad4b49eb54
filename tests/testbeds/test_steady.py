from hypothesis import given
from hypothesis import strategies as st

from testbeds.steady import WINDOWS, is_steady


def test_three_windows_that_are_no_faster_are_steady() -> None:
    # A q1 on Flink whose JVMs had the whole machine, windows of 3 s: it ends at the ninth.
    rates = [262, 461, 679, 768, 771, 1077, 985, 995, 815]
    assert [is_steady(rates[:n]) for n in range(1, 10)] == [False] * 8 + [True]


def test_creeping_up_by_four_percent_a_window_is_not_steady() -> None:
    assert not is_steady([1.04**n for n in range(20)])


@given(st.lists(st.floats(1.0, 1e6), max_size=20))
def test_what_stays_as_it_is_gets_steady(rates: list[float]) -> None:
    assert is_steady([*rates, max(rates, default=1.0)] + WINDOWS * [max(rates, default=1.0)])
    assert not is_steady(rates[:WINDOWS])
