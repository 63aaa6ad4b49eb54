"""Serving from a log, and rescaling while records keep arriving."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.errors import Infeasible, InvalidInput, SluiceError
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Rescaling, Simulator
from testbeds.simulator.rescaling import state_bytes

WINDOWS = {
    "at once": {"state": {"bytes_per_record": 100, "ttl_s": 8}},
    "sliding": {"window": {"kind": "sliding", "length_s": 6, "slide_s": 2}, "state": {"bytes_per_record": 100}},
    "session": {"window": {"kind": "session", "length_s": 5}, "state": {"bytes_per_record": 100}},
    "for ever": {"state": {"bytes_per_record": 1, "bytes_per_key": 1000}, "keys": {"distinct": 5000}},
}
QUICK = Physics().ideal().model_copy(update={"rescaling": Rescaling(restart_s=12.3)})


def counting(chain, kept="at once", cpu_s=1e-5):
    cost = {"cpu_s": cpu_s, "state_read_bytes": 10, "state_write_bytes": 10}
    return chain({"name": "count", "into": "hash", **cost, **WINDOWS[kept]}, source={"cpu_s": 1e-6})


def configuration(tasks=1, sources=1, memory_mb=65536.0):
    return Configuration({"source": sources, "count": tasks, "sink": 1}, memory_mb)


def deploy(job, asked=None, physics=QUICK, seed=1):
    return Simulator(physics=physics).deploy(job, asked or configuration(), run="r", seed=seed)


def test_what_is_not_read_is_owed_at_any_rate(chain):
    """100,000/s can be read: 100 s at 150,000/s owe 5 M records, which 50 s without new ones pay back."""
    with deploy(counting(chain)) as run:
        behind = run.serve(150_000, 100)
        assert behind.lag[-1] == pytest.approx(5e6, rel=0.01)
        assert np.all(behind.arrived == 750_000)
        paying = run.serve(0, 40)
        assert np.allclose(paying.read / 5, 100_000, rtol=1e-6) and np.all(paying.arrived == 0)
        paid = run.serve(0, 20)
        assert paid.lag[-1] == 0 and run.serve(0, 5).read[0] == 0


def test_sources_catch_up_as_fast_as_they_can(chain):
    """A source reads a million records/s, and nothing else holds it back."""
    with deploy(counting(chain, cpu_s=1e-7)) as run:
        run.rescale(configuration())
        assert run.serve(200_000, 15).read[-1] == pytest.approx(5e6 * (15 - 12.4) / 5, rel=0.05)


@pytest.mark.parametrize("tasks", [12, 13, 24])
def test_sources_with_twice_the_partitions_are_slower(chain, tasks):
    """24 partitions over 13 tasks: 11 tasks read two each, and 2 read one. A source reads 1,000/s."""
    one = {"cpu_s": 1e-3, "max_parallelism": 24}
    job = chain({"name": "count", "cpu_s": 1e-8, "into": "hash", **WINDOWS["at once"]}, source=one)
    with deploy(job, configuration(sources=tasks)) as run:
        assert run.serve(48_000, 30).read[-1] / 5 == pytest.approx(tasks * 1e3, rel=0.01)
    with deploy(job, configuration(sources=tasks)) as run:
        # Two partitions have 1,083 of 13,000/s, so 11 tasks fall behind by 83/s each; 13 with equal shares would keep up.
        owed = run.serve(13_000, 60).lag
        falling = {12: 12, 13: 11, 24: 0}[tasks]
        assert owed[-1] - owed[5] == pytest.approx(falling * (13_000 / 12 - 1_000) * 30, rel=0.05, abs=50)


def test_the_log_waits_while_a_generator_injects(chain):
    with deploy(counting(chain)) as run:
        owed = run.serve(200_000, 10).lag[-1]
        run.inject(10_000, 10, "observe")
        assert run.serve(0, 5).lag[-1] == pytest.approx(owed - 500_000, rel=0.05)


def test_a_rescale_takes_the_job_down_while_records_arrive(chain):
    """8 s of 50,000 records/s with 100 B each are 40 MB: 0.4 s for one task to save, 0.2 s for two to restore."""
    with deploy(counting(chain)) as run:
        run.serve(50_000, 30)
        done = run.rescale(configuration(2))
        assert done.downtime_s == pytest.approx(12.3 + 0.6, abs=0.1)
        assert run.configuration == configuration(2)
        first = run.serve(50_000, 10)
        assert first.running_s == 0 and first.activity == {} and np.all(first.read == 0)
        assert list(first.lag) == pytest.approx([250_000, 500_000])
        then = run.serve(50_000, 10)
        assert then.running_s == pytest.approx(20 - done.downtime_s)
        assert then.lag[-1] == 0 and set(then.activity) == {"source", "count", "sink"}
        assert len(then.activity["count"].busy_s) == 2


def test_an_injection_begins_when_the_job_is_up(chain):
    with deploy(counting(chain)) as run:
        before = run.elapsed_s
        run.rescale(configuration(2))
        assert run.inject(50_000, 10, "observe").achieved_rate == pytest.approx(50_000)
        assert run.elapsed_s == before + 15 + 10


def test_more_state_takes_longer(chain):
    """100 B for each record, for ever: 8 tasks move theirs at 100 MB/s each, twice."""
    job = chain({"name": "keep", "cpu_s": 1e-6, "into": "hash", "state": {"bytes_per_record": 100}})
    asked = Configuration({"source": 1, "keep": 1, "sink": 1}, 65536)
    with deploy(job, asked) as run:
        run.serve(500_000, 60)
        done = run.rescale(Configuration({"source": 1, "keep": 4, "sink": 1}, 65536))
    assert done.state_mb == pytest.approx(3e9 / 2**20, rel=1e-3)
    assert done.downtime_s == pytest.approx(12.3 + 30 + 30 / 4, abs=0.01)


def test_a_backlog_in_the_buffers_delays_the_savepoint(chain):
    with deploy(counting(chain)) as run:
        idle = run.rescale(configuration()).downtime_s
        run.serve(200_000, 60)
        assert run.rescale(configuration()).downtime_s > idle + 0.1


def test_in_place_is_quick(chain):
    """Nothing is saved: 0.7 s, and 40 MB for one task to restore."""
    in_place = Rescaling(restart_s=0.7, save_bytes_per_s=None, new_jvms=False)
    with deploy(counting(chain), physics=QUICK.model_copy(update={"rescaling": in_place})) as run:
        run.serve(50_000, 30)
        assert run.rescale(configuration()).downtime_s == pytest.approx(0.7 + 0.4, abs=0.1)


def test_new_jvms_compile_again(chain):
    cold = QUICK.model_copy(update={"cold_slowdown": 1.0})
    warm = cold.model_copy(update={"rescaling": Rescaling(restart_s=12.3, new_jvms=False)})

    def first_reads(physics):
        with deploy(counting(chain), physics=physics) as run:
            run.serve(200_000, 200)
            run.rescale(configuration())
            return run.serve(200_000, 25).read[-1]

    assert first_reads(warm) == pytest.approx(5 * 100_000, rel=0.01)
    assert first_reads(cold) < 0.7 * 5 * 100_000


def test_what_cannot_be_leaves_the_job_as_it_is(chain):
    with deploy(counting(chain)) as run:
        run.serve(50_000, 10)
        with pytest.raises(Infeasible):
            run.rescale(configuration(49))
        with pytest.raises(InvalidInput):
            run.rescale(configuration(0))
        after = run.serve(50_000, 10)
        assert run.configuration == configuration() and after.running_s == 10 and after.lag[-1] == 0


@pytest.mark.parametrize(("rate", "seconds"), [(-1.0, 5.0), (float("nan"), 5.0), (1.0, 7.0), (1.0, 0.0)])
def test_rates_and_times_that_cannot_be_served(chain, rate, seconds):
    with deploy(counting(chain)) as run, pytest.raises(InvalidInput):
        run.serve(rate, seconds)


def test_a_closed_run_serves_nothing(chain):
    run = deploy(counting(chain))
    run.close()
    for ask in (lambda: run.serve(1.0, 5.0), lambda: run.rescale(configuration())):
        with pytest.raises(SluiceError, match="closed"):
            ask()


def records_held(run):
    """Records in panes and in live state, of the operator that counts."""
    first, end = run.plant.operators["first"][1], run.plant.operators["end"][1]
    return np.sum(run.state.ring), np.sum(run.state.tasks["live"][first:end])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(WINDOWS)),
    st.lists(
        st.tuples(st.integers(1, 12), st.integers(1, 4), st.sampled_from([8192.0, 65536.0]), st.floats(0, 4e5)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 99),
)
def test_nothing_is_lost_or_made_twice(chain, kept, steps, seed):
    """Whatever the rescales: what arrived was read or waits, and state is the same before and after."""
    arrived = read = 0.0
    with deploy(counting(chain, kept), seed=seed) as run:
        for tasks, sources, memory_mb, rate in steps:
            for asked in (None, configuration(tasks, sources, memory_mb)):
                if asked is not None:
                    due = np.sum(run.state.tasks["log"])
                    done = run.rescale(asked)
                    assert done.state_mb * 2**20 == pytest.approx(np.sum(state_bytes(run.plant, run.state)), abs=1)
                    assert np.sum(run.state.tasks["log"]) == pytest.approx(due, rel=1e-12, abs=1e-9)
                    assert np.sum(run.state.gates["queue"]) < 1e-3
                served = run.serve(rate, 20)
                arrived, read = arrived + served.arrived.sum(), read + served.read.sum()
                assert arrived == pytest.approx(read + served.lag[-1], rel=1e-9, abs=1e-6)
                in_panes, live = records_held(run)
                assert kept == "for ever" or in_panes == pytest.approx(live, rel=1e-6, abs=1e-3)


def test_windows_end_by_the_time_of_arrival(chain):
    """Of 10 s, 20 s of which are read late, each window holds what arrived in its 10 s, and fires as that is read."""
    job = chain({"name": "count", "cpu_s": 1e-6, "into": "hash", "window": {"kind": "tumbling", "length_s": 10}})
    physics = QUICK.model_copy(update={"rescaling": Rescaling(restart_s=20)})
    with deploy(job, physics=physics) as run:
        before = run.serve(10_000, 20).activity["count"].records_out
        run.rescale(configuration())
        assert run.serve(10_000, 20).activity == {}
        caught_up = run.serve(10_000, 5)
        fired = caught_up.activity["count"].records_out
        assert caught_up.lag[-1] == 0 and before.sum() == pytest.approx(100_000, rel=0.02)
        assert fired.sum() == pytest.approx(300_000, rel=0.02)
        assert run.serve(10_000, 5).activity["count"].records_out.sum() == 0


def test_windows_of_records_that_are_stamped_when_read_end_by_the_clock(chain):
    job = chain({"name": "count", "cpu_s": 1e-6, "into": "hash", "window": {"kind": "tumbling", "length_s": 10}})
    with deploy(job, physics=QUICK.model_copy(update={"stamped": "reading"})) as run:
        run.serve(10_000, 15)
        assert run.serve(0, 10).activity["count"].records_out.sum() == pytest.approx(50_000, rel=0.03)


def test_silence_ends_no_window(chain):
    """Without records no watermark comes: the last window waits until they come again."""
    job = chain({"name": "count", "cpu_s": 1e-6, "into": "hash", "window": {"kind": "tumbling", "length_s": 10}})
    with deploy(job) as run:
        run.serve(10_000, 15)
        assert run.serve(0, 60).activity["count"].records_out.sum() == 0
        assert run.serve(10_000, 5).activity["count"].records_out.sum() == pytest.approx(50_000, rel=0.03)
