"""Exports have the form that Flink reads."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.errors import InvalidInput
from models.plan.content import Plan
from pipelines.apply.export import ExportFormat, export, read_vertices, remarks

PLAN = Path(__file__).parents[2] / "data" / "plans" / "nexmark-q5-v1.json"
IDS = {"source": "a" * 32, "window": "b" * 32, "sink": "c" * 32}


@pytest.fixture
def plan() -> Plan:
    return Plan.model_validate_json(PLAN.read_text())


def vertices_file(folder: Path, content: Any) -> Path:
    path = folder / "vertices.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def small(placement: dict[str, dict[str, int]], **changes: Any) -> Plan:
    """The plan with other tasks; operators beside the source are not counted as sources."""
    document = json.loads(PLAN.read_text())
    tasks: Counter[str] = Counter()
    for counts in placement.values():
        tasks.update(counts)
    for operator in document["operators"]:
        operator["parallelism"] = tasks[operator["name"]]
    total = sum(tasks.values())
    slots = {"total_slots": total, "task_slots": total - tasks["source"], "slots_per_worker": None}
    return Plan.model_validate(document | slots | {"placement": placement} | changes)


def test_overrides_are_one_option_of_the_flink_configuration(plan: Plan) -> None:
    text = export(plan, ExportFormat.OVERRIDES, IDS)
    assert text == (f"pipeline.jobvertex-parallelism-overrides: {'a' * 32}:2,{'b' * 32}:30,{'c' * 32}:2\n")


def test_requirements_are_the_body_of_the_rest_call(plan: Plan) -> None:
    assert json.loads(export(plan, ExportFormat.REQUIREMENTS, IDS)) == {
        "a" * 32: {"parallelism": {"lowerBound": 2, "upperBound": 2}},
        "b" * 32: {"parallelism": {"lowerBound": 30, "upperBound": 30}},
        "c" * 32: {"parallelism": {"lowerBound": 2, "upperBound": 2}},
    }


def test_a_rescale_by_the_operator_is_overrides_and_nothing_else(plan: Plan) -> None:
    """Any other field that changes would redeploy the job."""
    assert yaml.safe_load(export(plan, ExportFormat.FLINKDEPLOYMENT, IDS)) == {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": {"name": "nexmark-q5", "annotations": {"sluice/plan": "nexmark-q5@1"}},
        "spec": {
            "flinkConfiguration": {
                "pipeline.jobvertex-parallelism-overrides": f"{'a' * 32}:2,{'b' * 32}:30,{'c' * 32}:2"
            }
        },
    }
    assert any("flinkdeployment-resources first" in note for note in remarks(plan, ExportFormat.FLINKDEPLOYMENT, IDS))


def test_resources_have_replicas_memory_and_cores_as_requests_and_limits(plan: Plan) -> None:
    with_cores = plan.model_copy(update={"cores_per_worker": 2.5})
    sizes = {"memory": "8192Mi", "cpu": "2.5"}
    assert yaml.safe_load(export(with_cores, ExportFormat.FLINKDEPLOYMENT_RESOURCES)) == {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": {"name": "nexmark-q5", "annotations": {"sluice/plan": "nexmark-q5@1"}},
        "spec": {
            "flinkConfiguration": {"taskmanager.numberOfTaskSlots": "4"},  # flinkConfiguration maps text to text
            "taskManager": {"replicas": 9, "resources": {"requests": sizes, "limits": sizes}},
            "job": {"parallelism": 30},
        },
    }
    assert remarks(with_cores, ExportFormat.FLINKDEPLOYMENT_RESOURCES) == [
        "the placement is not in this format; export it with --format placement"
    ]


def test_without_cores_the_cpu_of_the_deployment_stays(plan: Plan) -> None:
    spec = yaml.safe_load(export(plan, ExportFormat.FLINKDEPLOYMENT_RESOURCES))["spec"]
    assert spec["taskManager"]["resources"]["requests"] == {"memory": "8192Mi"}
    assert any("states no cores" in note for note in remarks(plan, ExportFormat.FLINKDEPLOYMENT_RESOURCES))


def test_a_part_of_a_mebibyte_is_rounded_up_and_a_name_made_fit_for_kubernetes(plan: Plan) -> None:
    odd = plan.model_copy(update={"memory_mb": 2048.25, "job": "Nexmark_Q5.b"})
    patch = yaml.safe_load(export(odd, ExportFormat.FLINKDEPLOYMENT_RESOURCES))
    assert patch["spec"]["taskManager"]["resources"]["limits"]["memory"] == "2049Mi"
    assert patch["metadata"]["name"] == "nexmark-q5-b"


def test_workers_that_differ_get_the_slots_of_the_fullest_and_this_is_said(plan: Plan) -> None:
    uneven = small({"tm-1": {"source": 1}, "tm-2": {"window": 3, "sink": 2}, "tm-3": {"window": 1}})
    spec = yaml.safe_load(export(uneven, ExportFormat.FLINKDEPLOYMENT_RESOURCES))["spec"]
    assert spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"] == "5"
    assert spec["taskManager"]["replicas"] == 3
    notes = remarks(uneven, ExportFormat.FLINKDEPLOYMENT_RESOURCES)
    assert any("each TaskManager gets 5" in note for note in notes)


def test_placement_lines_number_subtasks_over_the_workers_in_natural_order() -> None:
    plan = small({"tm-10": {"window": 1, "sink": 1}, "tm-2": {"window": 2}, "tm-1": {"source": 1}})
    assert export(plan, ExportFormat.PLACEMENT, IDS).splitlines() == [
        f"{'a' * 32} 0 tm-1",
        f"{'b' * 32} 0 tm-2",
        f"{'b' * 32} 1 tm-2",
        f"{'b' * 32} 2 tm-10",
        f"{'c' * 32} 0 tm-10",
    ]


def test_placement_lines_put_every_task_where_the_plan_does(plan: Plan) -> None:
    lines = [line.split() for line in export(plan, ExportFormat.PLACEMENT).splitlines()]
    placed = Counter((worker, operator) for operator, _, worker in lines)
    assert placed == {(w, o): n for w, tasks in plan.placement.items() for o, n in tasks.items()}
    for operator, tasks in plan.parallelism.items():
        assert sorted(int(subtask) for name, subtask, _ in lines if name == operator) == list(range(tasks))


@pytest.mark.parametrize("form", [f for f in ExportFormat if f is not ExportFormat.FLINKDEPLOYMENT_RESOURCES])
def test_without_vertex_ids_operator_names_stand_there_and_this_is_said(plan: Plan, form: ExportFormat) -> None:
    assert "window" in export(plan, form)
    assert "window" not in export(plan, form, IDS)
    assert any("replace them" in note for note in remarks(plan, form))
    assert not any("replace them" in note for note in remarks(plan, form, IDS))


def test_vertex_ids_are_read_from_yaml_or_json(plan: Plan, tmp_path: Path) -> None:
    assert read_vertices(vertices_file(tmp_path, IDS), plan) == IDS
    as_json = tmp_path / "vertices.json"
    as_json.write_text(json.dumps(IDS))
    assert read_vertices(as_json, plan) == IDS


def test_operators_chained_to_one_vertex_are_exported_once(tmp_path: Path) -> None:
    plan = small({"tm-1": {"source": 1}, "tm-2": {"window": 2, "sink": 2}})
    chained = {"source": "a" * 32, "window": "b" * 32, "sink": "b" * 32}
    vertices = read_vertices(vertices_file(tmp_path, chained), plan)
    assert export(plan, ExportFormat.OVERRIDES, vertices).strip().endswith(f" {'a' * 32}:1,{'b' * 32}:2")
    assert export(plan, ExportFormat.PLACEMENT, vertices).count("b" * 32) == 2
    assert len(json.loads(export(plan, ExportFormat.REQUIREMENTS, vertices))) == 2


@pytest.mark.parametrize(
    ("placement", "what"),
    [
        ({"tm-1": {"source": 1}, "tm-2": {"window": 2, "sink": 1}}, "parallelism must be equal, but got 2 and 1"),
        ({"tm-1": {"source": 1, "sink": 1}, "tm-2": {"window": 2, "sink": 1}}, "placement must be equal"),
    ],
)
def test_operators_chained_to_one_vertex_must_agree(
    tmp_path: Path, placement: dict[str, dict[str, int]], what: str
) -> None:
    chained = {"source": "a" * 32, "window": "b" * 32, "sink": "b" * 32}
    with pytest.raises(InvalidInput, match=f"'window' and 'sink' share a vertex, so their {what}"):
        read_vertices(vertices_file(tmp_path, chained), small(placement))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"source": "a" * 32}, "the operator 'window' of the plan is missing"),
        (IDS | {"map": "d" * 32}, "'map' is no operator of the plan; it has source, window, sink"),
        (IDS | {"sink": "cbc357ccb763df2852fee8c4fc7d55f"}, "a vertex id has 32 hexadecimal digits, but 'sink' has"),
        (IDS | {"sink": 7}, "but 'sink' has 7"),
        (["a"], "must map operators to vertex ids, but holds list"),
    ],
)
def test_vertices_that_do_not_fit_the_plan_are_refused(plan: Plan, tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_vertices(vertices_file(tmp_path, content), plan)


@pytest.fixture
def shared(plan: Plan) -> Plan:
    """Four slots: two with source and window, one of them on each worker, and two with a window alone."""
    operators = [o.model_dump(mode="json") | {"parallelism": n} for o, n in zip(plan.operators, (2, 4, 4), strict=True)]
    vertex = {"managed_memory_mb": 0, "predicted_busyness": 0.5, "slot_sharing_group": "default"}
    slots = [{"vertices": ["source", "window"], "slots": 1}, {"vertices": ["window"], "slots": 1}]
    return Plan.model_validate(
        plan.model_dump(mode="json")
        | {
            "operators": operators,
            "vertices": [
                vertex | {"operators": ["source"], "parallelism": 2},
                vertex | {"operators": ["window", "sink"], "parallelism": 4},
            ],
            "slots": {"tm-10": slots, "tm-2": slots},
            "placement": {w: {"source": 1, "window": 2, "sink": 2} for w in ("tm-10", "tm-2")},
            "total_slots": 4,
            "slots_per_worker": None,
        }
    )


def test_a_plan_with_shared_slots_is_exported_by_vertex(shared: Plan) -> None:
    assert export(shared, ExportFormat.OVERRIDES) == "pipeline.jobvertex-parallelism-overrides: source:2,window:4\n"
    resources = yaml.safe_load(export(shared, ExportFormat.FLINKDEPLOYMENT_RESOURCES))["spec"]
    assert resources["taskManager"]["replicas"] == 2
    assert resources["flinkConfiguration"]["taskmanager.numberOfTaskSlots"] == "2"


def test_tasks_with_the_same_number_share_a_slot_on_the_same_worker(shared: Plan) -> None:
    # slots 0 and 1 hold a source and a window, on tm-2 and tm-10; slots 2 and 3 a window
    assert export(shared, ExportFormat.PLACEMENT).splitlines() == [
        "source 0 tm-2",
        "source 1 tm-10",
        "window 0 tm-2",
        "window 1 tm-10",
        "window 2 tm-2",
        "window 3 tm-10",
    ]
    assert not any("Flink's default" in said for said in remarks(shared, ExportFormat.PLACEMENT))


def test_slots_of_another_mix_end_each_line(shared: Plan) -> None:
    """Two slots with source and window, two with window and sink."""
    tasks = {"source": 2, "window": 4, "sink": 2}
    vertex = shared.vertices[0].model_dump(mode="json")
    slots = [{"vertices": [name, "window"], "slots": 1} for name in ("source", "sink")]
    apart = Plan.model_validate(
        shared.model_dump(mode="json")
        | {
            "operators": [o.model_dump(mode="json") | {"parallelism": tasks[o.name]} for o in shared.operators],
            "vertices": [vertex | {"operators": [name], "parallelism": n} for name, n in tasks.items()],
            "slots": {"tm-10": slots, "tm-2": slots},
            "placement": {w: {"source": 1, "window": 2, "sink": 1} for w in ("tm-10", "tm-2")},
        }
    )
    assert sorted(export(apart, ExportFormat.PLACEMENT).splitlines()) == [
        "sink 0 tm-2 1",
        "sink 1 tm-10 1",
        "source 0 tm-2 0",
        "source 1 tm-10 0",
        "window 0 tm-2 0",
        "window 1 tm-2 1",
        "window 2 tm-10 0",
        "window 3 tm-10 1",
    ]
    assert any("the number of the task's slot" in said for said in remarks(apart, ExportFormat.PLACEMENT))
