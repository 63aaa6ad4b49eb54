"""Which policies none beats in both latency and task-hours."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.arena.ranking import Standing
from pipelines.arena.report.trade_off import trade_off


def standing(policy: str, task_hours: float, p95: float | None) -> Standing:
    return Standing(
        job="q", workload="w", policy=policy, latency_p50_s=p95, latency_p95_s=p95, throughput_ratio=1.0,
        task_hours=task_hours, memory_gib_hours=0, rescales=0, downtime_s=0, convergence_s=None,
        convergence_steps=0, seeds=1, within_bound=True,
    )  # fmt: skip


def test_the_front_goes_from_cheap_to_fast() -> None:
    given_ = [("a", 300, 5.0), ("b", 100, 90.0), ("c", 200, 95.0), ("d", 200, 40.0), ("e", 400, 5.0), ("f", 10, None)]
    info = trade_off([standing(*one) for one in given_])
    assert [p.policy for p in info.points] == ["b", "d", "c", "a", "e"]
    assert [p.policy for p in info.front] == ["b", "d", "a"]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_no_policy_beats_one_of_the_front_and_each_other_is_beaten(pairs: list[tuple[int, int]]) -> None:
    info = trade_off([standing(str(i), cost, late) for i, (cost, late) in enumerate(pairs)])
    front = [(p.task_hours, p.latency_p95_s) for p in info.front]
    assert front == sorted(set(front))
    for point in ((p.task_hours, p.latency_p95_s) for p in info.points):
        assert not any(point != f and point[0] <= f[0] and point[1] <= f[1] for f in front)
        assert any(f[0] <= point[0] and f[1] <= point[1] for f in front)
