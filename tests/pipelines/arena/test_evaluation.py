"""Requests become cells, and cells a ranking by the stated rule."""

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from models.cluster import Cluster
from models.dataflow import Partitioning
from models.errors import Infeasible, InvalidInput
from models.job import Job
from models.scaling.policies import POLICIES
from pipelines.arena.evaluation import PEAK_SHARE, cells, evaluate
from pipelines.arena.grid import Finished
from pipelines.arena.ranking import rank
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.compute import capacity
from pipelines.arena.replays.workloads import Pattern, Workload, pattern
from pipelines.arena.request import EvaluationRequest
from pipelines.arena.results import RESULTS_SCHEMA
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
            **{name: made[name].settings["cooldown_s"] for name in ("dhalion", "hpa-cpu", "hpa-varga")},
            "sluice": made["sluice"].settings["least_between_s"],
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


def _as(finished: Finished, policy: str, late: float, task_hours: float, **cell: object) -> Finished:
    outcome = finished.outcome.model_copy(
        update={"within_10_s": 1 - late, "within_60_s": 1 - late / 10, "task_hours": task_hours}
    )
    return Finished(finished.cell.model_copy(update={"policy": policy, **cell}), finished.key, outcome, ())


def test_of_those_that_hold_the_attainment_the_fewest_task_hours_win(finished):
    one = finished[0]
    (ranking,) = rank(
        [_as(one, "ds2", 0, 900), _as(one, "flink", 0.01, 720), _as(one, "static", 0.02, 100)], _request()
    )
    assert [(s.policy, s.holds) for s in ranking.standings] == [("flink", True), ("ds2", True), ("static", False)]
    assert ranking.reason.startswith(
        "Run flink: it holds 99 % of records within 10 s with 20 % fewer task-hours than ds2"
    )


def test_if_none_holds_it_the_fewest_late_records_win(finished):
    one = finished[0]
    (ranking,) = rank([_as(one, "ds2", 0.5, 100), _as(one, "flink", 0.4, 700)], _request())
    assert ranking.reason == "No policy holds 99 % of records within 10 s: flink comes closest, with 40 % late."
    (longer,) = rank([_as(one, "ds2", 0.05, 100), _as(one, "flink", 0.04, 700)], _request(objective_s=60))
    assert longer.winner.policy == "ds2"  # a tenth of them is later than 60 s


def test_over_seeds_the_means_count_and_values_of_a_knob_are_settings_of_one_policy(finished):
    one = finished[0]
    runs = [
        _as(one, "ds2", late, 100 * (1 + spare), seed=seed, settings={"over_provisioning_factor": spare})
        for seed, share in ((1, 0.2), (2, 0.4))
        for spare, late in ((0.0, share), (1.0, 0.0))
    ]
    (ranking,) = rank(runs, _request(sweep=True))
    assert [(s.value, s.late_share, s.seeds) for s in ranking.settings[0]] == [(0, pytest.approx(0.3), 2), (1, 0, 2)]
    assert ranking.winner.value == 1
    (score,) = ranking.group.policies
    assert 100 < score.attained.task_hours < 200 and score.attained.interpolated


def test_each_rescale_mode_has_its_ranking_and_its_objective(finished):
    one = finished[0]
    runs = [_as(one, "ds2", 0.05, 100, rescale_mode=mode) for mode in ("in-place", "savepoint")]
    assert [(r.rescale_mode, r.group.objective_s, r.winner.holds) for r in rank(runs, _request())] == [
        ("in-place", 10, False),
        ("savepoint", 60, True),
    ]


def test_the_bound_of_a_seed_is_the_least_of_its_starts(
    finished: list[Finished], cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keyed map starts with over, but not twice, 64 tasks: only "over" decides for more than 128 key groups."""
    found, asked = {("over", 1): 5.0, ("over", 2): None, ("well", 1): 7.0, ("well", 2): 3.0}, []

    def bound(of: Cell, objective_s: float, attainment: float) -> SimpleNamespace | None:
        asked.append(of.seed)
        hours = found["over" if of.start == "over" else "well", of.seed]
        return None if hours is None else SimpleNamespace(task_hours=hours)

    def bound_hours(job: Job) -> float | None:
        asked.clear()
        given = {"job": job, "cluster": many, "workload": Workload(name="large", rates=(600_000,) * 4)}
        grid = product((1, 2), ("over", "well", "under"))
        runs = [_as(finished[0], "ds2", 0, 10, **given, start=start, seed=seed) for seed, start in grid]
        return rank(runs, _request())[0].bound_hours

    monkeypatch.setattr("pipelines.arena.ranking.lower_bound", bound)
    many = Cluster.model_validate({"name": "many", "count": 300, "slots": 1, "cores": 1, "memory_mb": 4096})
    into, out = cell("ds2").job.edges
    keyed = cell("ds2").job.model_copy(
        update={"edges": (into.model_copy(update={"partitioning": Partitioning.HASH}), out)}
    )
    assert (bound_hours(keyed), sorted(asked)) == ((5.0 + 3.0) / 2, [1, 1, 2, 2])
    assert bound_hours(keyed.model_copy(update={"key_groups": 128})) == (7.0 + 3.0) / 2
    assert sorted(asked) == [1, 2]


def test_a_sweep_replays_each_value_of_the_knob_and_the_own_one():
    own = {"flink": {"utilization.target": 0.5}}
    made = cells(_request(policies=["ds2", "flink", "static"], settings=own, sweep=True))
    values = {name: [POLICIES[name].knob_value(c.settings) for c in made if c.policy == name] for name in POLICIES}
    assert values["ds2"] == list(POLICIES["ds2"].knob.values)  # the recommended 0.2 is one of them
    assert values["flink"] == sorted([*POLICIES["flink"].knob.values, 0.5])
    assert {c.settings["rate"] for c in made if c.policy == "static"} == {made[0].workload.peak_rate}


def test_an_evaluation_leaves_a_table(tmp_path):
    workspace = Workspace(tmp_path)
    request = _request(policies=["ds2", "hpa-cpu"], minutes=3, peak_rate=50_000)
    evaluation = evaluate(request, workspace, processes=1)
    table = workspace.read_table(evaluation.results_key)
    assert table.schema == RESULTS_SCHEMA
    assert table["knob_value"].to_pylist() == [0.2, 0.7]
    assert table["policy"].to_pylist() == ["ds2", "hpa-cpu"]
    assert table["task_hours"].to_pylist() == [one.outcome.task_hours for one in evaluation.finished]
    assert [r.winner.policy for r in evaluation.rankings] == [evaluation.rankings[0].standings[0].policy]
