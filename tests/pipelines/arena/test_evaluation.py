"""Requests become cells, and cells a ranking by the stated rule."""

import pytest
from pydantic import ValidationError

from models.errors import Infeasible, InvalidInput
from models.scaling.policies import POLICIES
from pipelines.arena.evaluation import PEAK_SHARE, cells, evaluate
from pipelines.arena.grid import Finished
from pipelines.arena.ranking import RESULTS_SCHEMA, rank
from pipelines.arena.replays.compute import capacity
from pipelines.arena.replays.workloads import Pattern, pattern
from pipelines.arena.request import EvaluationRequest
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.store.workspace import Workspace

Q1 = {"jobs": ["nexmark-q1"], "workloads": ["cosine"], "policies": ["ds2"], "burn_in_minutes": 0}


def _request(**given) -> EvaluationRequest:
    return EvaluationRequest.model_validate(Q1 | given)


def test_a_request_is_a_grid():
    made = cells(_request(workloads=["cosine", "steps"], policies=["ds2", "hpa-cpu"], seed=5, seeds=2))
    assert [(c.workload.name, c.seed, c.policy) for c in made] == [
        (workload, seed, policy) for workload in ("cosine", "steps") for seed in (5, 6) for policy in ("ds2", "hpa-cpu")
    ]
    assert made[0].workload != made[2].workload  # another seed


def test_modes_and_starts_are_a_grid_too():
    made = cells(_request(rescale_modes=["in-place", "savepoint"], starts=["well", "under", "over"], minutes=40))
    assert [(c.rescale_mode, c.start) for c in made] == [
        (mode, start) for mode in ("in-place", "savepoint") for start in ("well", "under", "over")
    ]
    assert [c.least_between_s for c in made] == [60] * 3 + [180] * 3
    assert {c.burn_in_s for c in cells(_request(burn_in_minutes=30, minutes=40))} == {1800}
    with pytest.raises(InvalidInput, match="lasts 20 minutes and burn_in_minutes is 30; give less"):
        cells(_request(burn_in_minutes=30, minutes=20))


def test_all_policies_wait_equally_long_after_a_rescale_and_static_knows_the_peak():
    for mode, least_s in (("in-place", 60), ("savepoint", 180)):
        made = {c.policy: c for c in cells(_request(policies=list(POLICIES), rescale_modes=[mode]))}
        waits = {
            "ds2": made["ds2"].settings["warm_up_intervals"] * 30,
            "justin": made["justin"].settings["stabilization_s"],
            "flink": made["flink"].settings["stabilization.interval"],
            **{name: made[name].settings["cooldown_s"] for name in ("dhalion", "hpa-cpu", "hpa-varga", "sluice")},
        }
        assert set(waits.values()) == {least_s} == {c.least_between_s for c in made.values()}
        assert waits.keys() | {"static"} == set(POLICIES)
        assert made["static"].settings == {"rate": made["static"].workload.peak_rate}
    (given,) = cells(_request(policies=["static"], settings={"static": {"rate": 5, "factor": 2}}))
    assert given.settings == {"rate": 5, "factor": 2}


def test_patterns_are_scaled_to_job_and_cluster_by_default():
    job = load_job("nexmark-q1")
    (by_default,) = cells(_request())
    assert by_default.workload == pattern(Pattern.COSINE, PEAK_SHARE * capacity(job, load_cluster("arena")).rate)
    (given,) = cells(_request(peak_rate=22_000, minutes=30))
    assert given.workload == pattern(Pattern.COSINE, 22_000, minutes=30)


def test_files_keep_their_rates_by_default(tmp_path):
    path = tmp_path / "day.csv"
    path.write_text("minute,a,b\n0,1,2\n1,3,8\n2,5,4\n")
    (kept,) = cells(_request(workloads=[f"{path}:a"]))
    assert kept.workload.rates == (1, 3, 5)
    (scaled,) = cells(_request(workloads=[f"{path}:b"], peak_rate=16, minutes=2))
    assert scaled.workload.rates == (4, 16)


def test_sluice_places_by_caps_on_workers_of_several_slots():
    def placements(**given):
        return [c.placement for c in cells(_request(policies=["ds2", "sluice"], **given))]

    assert placements() == ["evenly", "evenly"]
    assert placements(cluster="capsys-4x8") == ["evenly", "caps"]
    assert placements(cluster="capsys-4x8", placement="evenly") == ["evenly", "evenly"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workloads": ["sine"]}, "no workload 'sine'; there are increasing, decreasing, cosine, random, steps"),
        ({"policies": ["guess"]}, "no policy 'guess'"),
        ({"jobs": ["nexmark-q99"]}, "no job 'nexmark-q99'"),
        ({"settings": {"ds2": {"interval": 3}}}, "'ds2' has no setting 'interval'"),
        ({"workloads": ["missing.csv"]}, "missing.csv does not exist"),
    ],
)
def test_unknown_parts_are_named_before_anything_runs(given, message):
    with pytest.raises(InvalidInput, match=message):
        cells(_request(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policies": ["ds2", "ds2"]}, "'ds2' appears 2 times"),
        ({"settings": {"flink": {}}}, "settings for 'flink', which is not among the policies"),
        ({"policies": []}, "at least 1"),
        ({"minutes": 0}, "greater than or equal to 1"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(given, message):
    with pytest.raises(ValidationError, match=message):
        _request(**given)


def test_a_job_that_does_not_fit_the_cluster_is_refused(tmp_path):
    small = tmp_path / "small.yaml"
    small.write_text("{name: small, count: 2, slots: 1}")
    with pytest.raises(Infeasible):
        cells(_request(cluster=str(small)))


@pytest.fixture(scope="module")
def finished(cell, tmp_path_factory) -> list[Finished]:
    from pipelines.arena.grid import run_cells

    return run_cells([cell("ds2", seed=s) for s in (1, 2)], Workspace(tmp_path_factory.mktemp("arena")), processes=1)


def _as(finished: Finished, policy: str, p95: float | None, task_hours: float) -> Finished:
    outcome = finished.outcome.model_copy(update={"latency_p95_s": p95, "task_hours": task_hours})
    cell = finished.cell.model_copy(update={"policy": policy})
    return Finished(cell, finished.key, outcome, ())


def test_within_the_bound_the_fewest_task_hours_win(finished):
    one = finished[0]
    (ranking,) = rank([_as(one, "a", 5, 900), _as(one, "b", 59, 700), _as(one, "c", 61, 100)], bound_s=60)
    assert [s.policy for s in ranking.standings] == ["b", "a", "c"]
    assert ranking.reason == (
        "b: it takes the fewest task-hours of the 2 policies with a p95 latency within 60 s "
        "(p95 59.0 s, 700.0 task-hours)"
    )


def test_beyond_the_bound_the_lowest_latency_wins(finished):
    one = finished[0]
    (ranking,) = rank([_as(one, "a", 500, 100), _as(one, "b", 400, 700)], bound_s=60)
    assert ranking.reason.startswith("b: no policy keeps the p95 latency within 60 s, and this one has the lowest")
    (alone,) = rank([_as(one, "a", 500, 100), _as(one, "b", 40, 700)], bound_s=60)
    assert alone.reason.startswith("b: only its p95 latency is within 60 s")


def test_over_seeds_the_medians_count(finished):
    one = finished[0]
    latencies = {"a": (10, 20, 900), "b": (30, 40, 50)}
    (ranking,) = rank([_as(one, policy, p95, 100) for policy, all_ in latencies.items() for p95 in all_])
    assert [(s.policy, s.latency_p95_s, s.seeds) for s in ranking.standings] == [("a", 20, 3), ("b", 40, 3)]


def test_an_evaluation_leaves_a_table(tmp_path):
    workspace = Workspace(tmp_path)
    request = _request(policies=["ds2", "hpa-cpu"], minutes=3, peak_rate=50_000)
    evaluation = evaluate(request, workspace, processes=1)
    table = workspace.read_table(evaluation.results_key)
    assert table.schema == RESULTS_SCHEMA
    assert table["policy"].to_pylist() == ["ds2", "hpa-cpu"]
    assert table["task_hours"].to_pylist() == [one.outcome.task_hours for one in evaluation.finished]
    assert [r.winner.policy for r in evaluation.rankings] == [evaluation.rankings[0].standings[0].policy]
