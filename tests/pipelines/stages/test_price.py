"""A plan on a cluster that offers worker kinds: from the published measurements of q5 to prices, exports and replans."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.errors import InvalidInput
from models.plan.content import Plan
from models.resources.planned import Price
from pipelines.apply.export import ExportFormat, export
from pipelines.cli import run as sluice
from pipelines.inputs.catalogue import load_cluster
from pipelines.inputs.plan_request import PlanRequest
from pipelines.pages.comparison import compare
from pipelines.planning.replan import replan
from pipelines.planning.threshold_request import ThresholdRequest
from pipelines.planning.threshold_table import make_table
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace

KINDS = [
    {"name": "small", "slots": 4, "cores": 4, "memory_mb": 16384, "price_per_hour": 0.25},
    {"name": "large", "slots": 16, "cores": 16, "memory_mb": 65536, "price_per_hour": 0.9},
    {"name": "lean", "slots": 16, "cores": 16, "memory_mb": 32768, "price_per_hour": 0.1},
]


def write(folder: Path, **document: Any) -> str:
    path = folder / "cloud.yaml"
    path.write_text(yaml.safe_dump({"name": "cloud", **document}))
    return str(path)


def planned(workspace: Workspace, request: PlanRequest, cluster: str) -> Plan:
    run_all(PipelineRun(request.model_copy(update={"rate": 400_000.0, "cluster": cluster}), workspace))
    return PlanStore(workspace).current("nexmark-q5")


@pytest.mark.slow
def test_the_cheapest_kind_is_planned_stated_exported_and_replanned(
    tracked_workspace: Workspace, recorded_request: PlanRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tracked_workspace, recorded_request, write(tmp_path, kinds=KINDS))
    # The log law asks for 17 to 23 task slots, 19 of them planned, and 2 for sources: 6 workers of 4 slots for 1.50, or 2
    # of 16 for 1.80.
    found = plan.resources
    assert (plan.task_slots, plan.total_slots, plan.slots_needed.low, plan.slots_needed.high) == (19, 21, 17, 23)
    assert (found.kind, found.task_managers, found.cores, found.total_cores) == ("small", 6, 4, 24)
    assert (found.memory_mb, found.total_memory_mb) == (16384, 98304)
    assert found.price == Price(per_hour=Decimal("1.5"), low=Decimal("1.25"), high=Decimal("1.75"))
    assert [(a.kind, a.task_managers, a.price_per_hour) for a in found.alternatives] == [
        ("small", 6, Decimal("1.5")),
        ("large", 2, Decimal("1.8")),
        ("lean", None, None),
    ]
    assert set(plan.placement) == {f"small-{i + 1}" for i in range(6)}
    assert any("6 TaskManagers of kind small hold 21 tasks, sources included, for 1.50 USD" in r for r in plan.reasons)
    # (16384 - 256 - 1024) x 0.4 / 4, where (65536 - 256 - 1024) x 0.4 / 16 was measured.
    assert any("has 1,510 MiB of managed memory, but 1,606 when measured" in reason for reason in plan.reasons)
    assert max(o.managed_memory_mb for o in plan.operators) == 1510.4

    task_manager = yaml.safe_load(export(plan, ExportFormat.FLINKDEPLOYMENT_RESOURCES))["spec"]["taskManager"]
    assert task_manager["replicas"] == 6
    assert task_manager["resources"]["requests"] == {"memory": "16384Mi", "cpu": "4"}
    _is_shown(tracked_workspace, capsys)

    # 3 tasks of sources and 29 others: 8 small workers cost 2.00, 2 large ones 1.80.
    more = replan(tracked_workspace, "nexmark-q5", 600_000).plan
    assert (more.total_slots, more.resources.kind, more.resources.task_managers) == (32, "large", 2)
    assert (more.memory_mb, more.resources.price.per_hour) == (65536, Decimal("1.8"))
    compared = compare(tracked_workspace, "nexmark-q5", 1, 2)
    assert (compared.before.price_per_hour, compared.after.price_per_hour) == (Decimal("1.5"), Decimal("1.8"))
    at = ["--workspace", tracked_workspace.url]
    capsys.readouterr()
    assert sluice(["plans", "diff", "nexmark-q5", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["price_per_hour"] == {"before": 1.5, "after": 1.8, "change": 0.3}
    assert sluice(["plans", "diff", "nexmark-q5", *at]) == 0
    assert re.search(r"price, USD per hour +1\.50 +1\.80", capsys.readouterr().out)

    # Each rate has workers of its own, and so a table: 6 small ones for 432,000 records/s, 7 for 480,000.
    table = make_table(tracked_workspace, "nexmark-q5", ThresholdRequest(rate=480_000, lowest=0.9, highest=1))
    assert [(row.total_slots, len(row.placement)) for row in table.rows] == [(23, 6), (25, 7)]
    fewer = replan(tracked_workspace, "nexmark-q5", 480_000).plan
    assert (fewer.resources.kind, fewer.resources.task_managers) == ("small", 7)
    assert any("the placement from the threshold table" in reason for reason in fewer.reasons)


def _is_shown(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    at = ["--workspace", workspace.url]
    assert sluice(["plans", "show", "nexmark-q5", *at]) == 0
    shown = capsys.readouterr().out
    assert "6 TaskManagers of kind small: 24 cores, 4 each; 98,304 MiB, 16,384 each" in shown
    assert "1.50 USD per hour (1.25 to 1.75 over" in shown
    assert re.search(r"large +16 +16 +65,536 +2 +1\.80 +possible", shown)
    assert sluice(["plans", "list", "--json", *at]) == 0
    (row,) = json.loads(capsys.readouterr().out)["plans"]
    assert (row["price_per_hour"], row["total_cores"]) == (1.5, 24)
    report = workspace.read_bytes(report_key("nexmark-q5", 1)).decode()
    assert "1.50 USD" in report and "<h2>Worker kinds</h2>" in report


def test_without_a_price_nothing_is_said_of_money(
    planned_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = PlanStore(planned_workspace).get("nexmark-q5", 1)
    assert plan.resources is not None and plan.resources.price is None
    assert plan.resources.total_cores == 16 * len(plan.placement)
    for command in (["show", "nexmark-q5@1"], ["list"]):
        assert sluice(["plans", *command, "--workspace", planned_workspace.url]) == 0
        assert "USD" not in capsys.readouterr().out
    assert "USD" not in planned_workspace.read_bytes(report_key("nexmark-q5", 1)).decode()


def test_only_a_plan_takes_kinds(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="here the workers must be given"):
        load_cluster(write(tmp_path, kinds=KINDS))
