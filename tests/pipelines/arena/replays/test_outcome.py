"""Metrics of section 5.1 that are counted, by hand."""

from pipelines.arena.replays.cell import RescaleRecord
from pipelines.arena.replays.outcome import convergences
from pipelines.arena.replays.workloads import Pattern, pattern


def _rescale(time_s: float) -> RescaleRecord:
    return RescaleRecord(
        time_s=time_s, downtime_s=30, state_mb=0, tasks=1, parallelism={"a": 1}, memory_mb={}, reason="because"
    )


def test_convergence_is_the_time_until_the_tasks_stay():
    # Lasting changes at 600, 3000 and 5400 s, the end at 8400 s.
    steps = pattern(Pattern.STEPS, 1000)
    done = [_rescale(s) for s in (300, 660, 900, 3120, 4700, 4790)]
    first, second, third = convergences(done, steps)
    assert (first.change_s, first.rate, first.seconds, first.steps) == (600, 500, 330, 2)
    # The last rescale of the second round ends at 4820 s, less than 10 minutes before the next change.
    assert (second.change_s, second.rate, second.seconds, second.steps) == (3000, 1000, None, 3)
    assert (third.change_s, third.rate, third.seconds, third.steps) == (5400, 500, 0, 0)


def test_without_lasting_changes_there_is_nothing_to_converge_to():
    assert convergences([_rescale(60)], pattern(Pattern.COSINE, 1000)) == ()
