"""What the DAGs look like: tasks, order, retries, timeouts, assets, parameters, documentation."""

import json
from datetime import timedelta
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
import typer
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, RetryAction, TriggerRule
from airflow.sdk.exceptions import ParamValidationError

from models.errors import Infeasible, InvalidInput
from models.scaling.policies import POLICIES
from pipelines.arena.replays.workloads import Pattern
from pipelines.arena.request import EvaluationRequest
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.threshold_request import ThresholdRequest
from sluice_airflow.pools import MEASURING, REPLANNING
from sluice_airflow.triggers import AutopilotTrigger, CalendarTrigger, ObservationTrigger, RateChangeTrigger
from sluice_airflow.turns import JobTurn

DAGS = [
    "apply_plan",
    "autopilot_jobs",
    "capacity_plan",
    "evaluate_policies",
    "observe_jobs",
    "replan",
    "threshold_table",
    "watch_drift",
]
STAGE_IDS = [
    "profile",
    "explore",
    "check",
    "features",
    "check_features",
    "twin",
    "select",
    "review",
    "size",
    "scale",
    "place",
    "publish",
]


AFTER_REVIEW = STAGE_IDS.index("review") + 1
PLANNING_IDS = [*STAGE_IDS[:AFTER_REVIEW], "approve", *STAGE_IDS[AFTER_REVIEW:]]
FOR_OTHER_JOBS = ["ask_again"]
BEFORE_STAGES = ["jobs", "request", "turn"]


def test_planning_has_one_task_a_stage_in_the_order_of_the_pipeline_and_one_that_asks_a_person(
    dags: dict[str, DAG],
) -> None:
    from pipelines.stages import STAGES

    assert list(STAGES) == STAGE_IDS
    ids = [task.task_id for task in dags["capacity_plan"].topological_sort()]
    assert [name for name in ids if name not in FOR_OTHER_JOBS] == [*BEFORE_STAGES, *PLANNING_IDS]
    assert set(FOR_OTHER_JOBS) < set(ids)
    assert isinstance(dags["capacity_plan"].get_task("approve"), ApprovalOperator)


def test_each_stage_follows_the_one_before_it_and_the_request(dags: dict[str, DAG]) -> None:
    for before, stage in pairwise(["request", "turn", *PLANNING_IDS]):
        assert dags["capacity_plan"].get_task(stage).upstream_task_ids == {"request", before}


def test_other_jobs_that_asked_with_the_first_one_ask_again(dags: dict[str, DAG]) -> None:
    again = dags["capacity_plan"].get_task("ask_again")
    assert not again.is_mapped, "hundreds of jobs send one event"
    assert again.upstream_task_ids == {"jobs"}


def test_drift_is_looked_for_in_batches_and_one_event_asks_for_capacity_plans(dags: dict[str, DAG]) -> None:
    dag = dags["watch_drift"]
    watch, ask = dag.get_task("watch"), dag.get_task("ask")
    assert watch.is_mapped
    assert watch.upstream_task_ids == {"batches"}
    assert watch.max_active_tis_per_dag == 2, "hundreds of jobs leave slots to other DAGs"
    assert "outlets" not in watch.partial_kwargs, "a batch that fails sends no events, so it must have none to send"
    assert ask.upstream_task_ids == {"batches", "watch"}
    assert [asset.name for asset in ask.outlets] == [asset.name for asset in ask.inlets] == ["sluice-reprofile"]
    assert dag.schedule == "@daily"
    timetable = dags["capacity_plan"].timetable
    assert [asset.name for asset in timetable.asset_condition.objects] == ["sluice-reprofile"]
    assert timetable.timetable == CronDataIntervalTimetable("@weekly", timezone="UTC")


def test_requests_are_sent_though_a_batch_failed_and_the_run_fails_then(dags: dict[str, DAG]) -> None:
    dag = dags["watch_drift"]
    assert dag.get_task("ask").trigger_rule == TriggerRule.ALL_DONE
    assert [task.task_id for task in dag.leaves] == ["checked"]
    checked = dag.get_task("checked")
    assert (checked.upstream_task_ids, checked.trigger_rule) == ({"watch", "ask"}, TriggerRule.NONE_FAILED)


def test_replanning_maps_one_plan_over_each_change(dags: dict[str, DAG]) -> None:
    plan_again = dags["replan"].get_task("plan_again")
    assert plan_again.is_mapped
    assert plan_again.upstream_task_ids == {"changes"}


def test_replans_take_turns_leave_slots_to_other_dags_and_go_first(dags: dict[str, DAG]) -> None:
    dag = dags["replan"]
    assert dag.max_active_runs == 1
    assert dag.get_task("plan_again").partial_kwargs["pool"] == REPLANNING
    assert dag.get_task("changes").pool != REPLANNING, "it must not wait for the replans before it"
    longest = max(len(dags[name].tasks) for name in DAGS)  # a task weighs one for itself and each that waits for it
    assert all(task.weight_rule == "absolute" and task.priority_weight > longest for task in dag.tasks)


@pytest.mark.parametrize("name", DAGS)
def test_every_task_is_retried_has_a_timeout_and_says_what_it_does(dags: dict[str, DAG], name: str) -> None:
    for task in dags[name].tasks:
        assert task.retries == 2, task
        assert task.retry_delay == timedelta(seconds=15), task
        assert task.execution_timeout is not None and task.execution_timeout <= timedelta(days=1), task
        assert task.doc_md, task


@pytest.mark.parametrize("error", [InvalidInput("x"), Infeasible("x")])
@pytest.mark.parametrize("name", DAGS)
def test_errors_that_a_person_must_fix_are_not_retried(dags: dict[str, DAG], name: str, error: Exception) -> None:
    for task in dags[name].tasks:
        policy = task.retry_policy if not task.is_mapped else task.partial_kwargs["retry_policy"]
        assert policy.evaluate(error, 1, 2).action is RetryAction.FAIL
        assert policy.evaluate(OSError("disk"), 1, 2).action is RetryAction.DEFAULT


@pytest.mark.parametrize("name", DAGS)
def test_dags_are_documented_tagged_and_do_not_catch_up(dags: dict[str, DAG], name: str) -> None:
    assert "SLUICE_WORKSPACE" in dags[name].doc_md or "sluice-rate-change" in dags[name].doc_md
    assert {"sluice", "capacity"} <= set(dags[name].tags)
    assert dags[name].catchup is False


def test_the_pipeline_leaves_its_assets_where_they_have_been_checked(dags: dict[str, DAG]) -> None:
    stages = [task for task in dags["capacity_plan"].tasks if not task.is_mapped]
    outlets = {task.task_id: [asset.name for asset in task.outlets] for task in stages}
    assert {task: names for task, names in outlets.items() if names} == {
        "ask_again": ["sluice-reprofile"],
        "check": ["sluice-samples"],
        "check_features": ["sluice-features"],
        "approve": ["sluice-model"],
        "publish": ["sluice-plan"],
    }
    inlets = {task.task_id: [asset.name for asset in task.inlets] for task in stages}
    assert {task: names for task, names in inlets.items() if names} == {
        "jobs": ["sluice-reprofile"],
        "check_features": ["sluice-samples"],
        "approve": ["sluice-features"],
        "publish": ["sluice-model"],
    }


def test_asset_uris_have_a_private_scheme() -> None:
    from sluice_airflow import assets

    known = [value for value in vars(assets).values() if isinstance(value, Asset)]
    assert len(known) == 10
    assert all(asset.uri.startswith("x-sluice://") for asset in known)


def test_replanning_is_scheduled_on_rate_changes_and_calendars(dags: dict[str, DAG]) -> None:
    scheduled_on = dags["replan"].timetable.asset_condition.objects
    assert [asset.name for asset in scheduled_on] == ["sluice-rate-change"]
    rates, calendars = scheduled_on[0].watchers
    assert isinstance(rates.trigger, RateChangeTrigger) and isinstance(calendars.trigger, CalendarTrigger)


def test_running_jobs_are_observed_while_the_dag_is_unpaused(dags: dict[str, DAG]) -> None:
    (asset,) = dags["observe_jobs"].timetable.asset_condition.objects
    assert asset.name == "sluice-observed"
    (watcher,) = asset.watchers
    assert isinstance(watcher.trigger, ObservationTrigger)


def test_autopilots_run_while_their_dag_is_unpaused_and_ask_a_person_where_a_file_wants_it(
    dags: dict[str, DAG],
) -> None:
    dag = dags["autopilot_jobs"]
    (asset,) = dag.timetable.asset_condition.objects
    assert asset.name == "sluice-autopilot"
    (watcher,) = asset.watchers
    assert isinstance(watcher.trigger, AutopilotTrigger)
    assert {task.task_id for task in dag.tasks} == {"sent", "events", "harm", "permission.approve"}
    assert isinstance(dag.get_task("permission.approve"), ApprovalOperator)


def test_a_threshold_table_is_made_for_each_job_with_a_new_plan(dags: dict[str, DAG]) -> None:
    dag = dags["threshold_table"]
    assert [asset.name for asset in dag.timetable.asset_condition.objects] == ["sluice-plan"]
    assert [task.task_id for task in dag.topological_sort()] == ["jobs", "tune_all"]
    tune_all = dag.get_task("tune_all")
    assert tune_all.is_mapped
    assert tune_all.upstream_task_ids == {"jobs"}
    assert [asset.name for asset in tune_all.partial_kwargs["outlets"]] == ["sluice-thresholds"]
    assert dag.max_active_runs == 1


def test_parameters_of_a_threshold_table_are_those_of_its_request_with_its_defaults(dags: dict[str, DAG]) -> None:
    params = dags["threshold_table"].params
    fields = {name: field for name, field in ThresholdRequest.model_fields.items() if name != "schema_version"}
    assert set(params) == {"job", *fields}
    for name, field in fields.items():
        assert params[name] == field.default, name


def test_an_evaluation_ends_with_one_choice_a_job(dags: dict[str, DAG]) -> None:
    dag = dags["evaluate_policies"]
    assert [task.task_id for task in dag.topological_sort()] == ["request", "replay", "report", "jobs", "choose"]
    assert (dag.schedule, dag.max_active_runs) == ("@weekly", 1)
    choose = dag.get_task("choose")
    assert choose.is_mapped
    assert [asset.name for asset in choose.partial_kwargs["outlets"]] == ["sluice-policies"]


def test_parameters_of_an_evaluation_are_those_of_its_request_with_its_defaults(dags: dict[str, DAG]) -> None:
    params = dags["evaluate_policies"].params
    fields = {name: field for name, field in EvaluationRequest.model_fields.items() if name != "schema_version"}
    assert set(params) == {"spark", *fields}
    for name, field in fields.items():
        if not field.is_required():
            default = field.get_default(call_default_factory=True)
            assert params[name] == (list(default) if isinstance(default, tuple) else default), name
    assert params["workloads"] == list(Pattern)
    assert params["policies"] == list(POLICIES)


@pytest.mark.parametrize(
    "wrong", [{"jobs": []}, {"jobs": ""}, {"jobs": [1]}, {"seeds": 0}, {"placement": "anyhow"}], ids=str
)
def test_the_schema_refuses_what_an_evaluation_refuses(dags: dict[str, DAG], wrong: dict[str, Any]) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(ParamValidationError):
        dags["evaluate_policies"].params.get_param(name).resolve(value)


def test_runs_for_several_jobs_go_on_beside_each_other_but_measure_in_one_pool(dags: dict[str, DAG]) -> None:
    dag = dags["capacity_plan"]
    assert dag.max_active_runs > 1
    pools = {task.task_id: task.pool for task in dag.tasks if task.pool != "default_pool"}
    assert pools == dict.fromkeys(("profile", "explore"), MEASURING)
    assert isinstance(dag.get_task("turn"), JobTurn)
    assert dag.get_task("profile").upstream_task_ids == {"request", "turn"}


def test_parameters_are_those_of_a_request_with_its_defaults(dags: dict[str, DAG]) -> None:
    params = dags["capacity_plan"].params
    fields = {name: field for name, field in PlanRequest.model_fields.items() if name != "schema_version"}
    assert set(params) == set(fields)
    for name, field in fields.items():
        if not field.is_required():
            assert params[name] == field.default, name


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 0},
        {"rate": -1.0},
        {"rate": "fast"},
        {"job": ""},
        {"job": None},
        {"testbed": "yarn"},
        {"model": "cubic"},
        {"headroom": 0.9},
        {"memory_mb": 0},
        {"max_task_slots": 0},
        {"max_measurements": 2},
        {"max_measurements": 21},
        {"seed": -1},
        {"run": "a/b"},
        {"rate": float("inf")},
        {"rate": float("nan")},
        {"rate": 1e13},
        {"headroom": float("nan")},
        {"memory_mb": float("inf")},
    ],
    ids=str,
)
def test_the_schema_refuses_what_a_request_refuses(dags: dict[str, DAG], wrong: dict[str, Any]) -> None:
    good = {"job": "nexmark-q5", "rate": 1.0}
    PlanRequest.model_validate(good)
    with pytest.raises(ValueError):
        PlanRequest.model_validate(good | wrong)
    (name, value), *_ = wrong.items()
    with pytest.raises(ParamValidationError):
        dags["capacity_plan"].params.get_param(name).resolve(value)


def test_one_parameter_has_one_description_and_one_bound_everywhere(dags: dict[str, DAG]) -> None:
    import_module("pipelines.cli.plans.plan")  # registers the commands
    from pipelines.cli import app

    commands = typer.main.get_command(app).commands
    schema = PlanRequest.model_json_schema()["properties"]
    for name, command, dag in [
        *((name, "plan", "capacity_plan") for name in schema if name != "schema_version"),
        *((name, "replan", "replan") for name in ("job", "rate")),
    ]:
        option = next(p for p in commands[command].params if p.name == name)
        param = dags[dag].params.get_param(name)
        assert param.description == option.help == schema[name]["description"], name
        for bound, key in (("min", "minimum"), ("max", "maximum")):
            given = param.schema.get(key, param.schema.get("exclusiveMinimum") if bound == "min" else None)
            assert getattr(option, bound, None) == given, (name, bound)


def test_what_the_form_sends_for_finite_numbers_is_accepted(dags: dict[str, DAG]) -> None:
    params = dags["capacity_plan"].params
    for name, value in {"rate": 0.5, "headroom": 1, "memory_mb": None, "measurement_rows": 3, "run": None}.items():
        assert params.get_param(name).resolve(value) == value
    replan = dags["replan"].params
    assert (replan.get_param("job").resolve(None), replan.get_param("rate").resolve(None)) == (None, None)
    with pytest.raises(ParamValidationError):
        replan.get_param("rate").resolve(float("inf"))


@pytest.mark.parametrize("name", [name for name in DAGS if name not in ("autopilot_jobs", "observe_jobs")])
def test_every_parameter_is_described(dags: dict[str, DAG], name: str) -> None:
    params = dags[name].params
    also = {"evaluate_policies": "peak_rate", "watch_drift": "samples", "apply_plan": "version"}.get(name, "rate")
    assert {"jobs" if name == "evaluate_policies" else "job", also} <= set(params)
    for key in params:
        assert params.get_param(key).description, key
        json.dumps(params.get_param(key).schema)


@pytest.mark.parametrize("name", DAGS)
def test_numbers_are_finite(dags: dict[str, DAG], name: str) -> None:
    params = {key: dags[name].params.get_param(key) for key in dags[name].params}
    numbers = {key: param for key, param in params.items() if "number" in param.schema.get("type", ())}
    for key, param in numbers.items():
        with pytest.raises(ParamValidationError):
            param.resolve(json.loads("1e400"))
            pytest.fail(f"{key} accepts infinity, which JSON keeps as null")
