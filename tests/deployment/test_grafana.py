"""The Grafana board: every query names metrics and labels that the exporter has, and Prometheus can parse it."""

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.core import Metric

from autopilots.records import store_autopilots
from pipelines.monitoring.exporter import AutopilotCollector
from pipelines.store.workspace import Workspace

NAME = re.compile(r"\bsluice_autopilot\w*")
LABELLED = re.compile(r"(sluice_autopilot\w*)\{([^}]*)\}")


@pytest.fixture(scope="module")
def board(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "docker" / "grafana" / "sluice-autopilot.json").read_text())
    return found


@pytest.fixture(scope="module")
def queries(board: dict[str, Any]) -> list[str]:
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    variables = [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    return [target["expr"] for panel in panels for target in panel["targets"]] + variables


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Names of series, as they are scraped, and their labels."""
    workspace, now = Workspace(tmp_path_factory.mktemp("exported")), datetime.now(UTC)
    store_autopilots(workspace, now, minutes=2)
    found: dict[str, set[str]] = {}
    families: list[Metric] = list(AutopilotCollector(workspace, lambda: now).collect())
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_query_names_what_is_exported(queries: list[str], exported: dict[str, set[str]]) -> None:
    assert len(queries) >= 12
    for query in queries:
        named = set(NAME.findall(re.sub(r"\{[^}]*\}|by ?\([^)]*\)|on ?\([^)]*\)|le\b", "", query)))
        assert named and named <= set(exported), query
        for name, matchers in LABELLED.findall(query):
            labels = {matcher.split("=")[0].rstrip("!~ ") for matcher in matchers.split(",")}
            assert labels <= exported[name], query


def test_the_board_shows_what_is_asked_of_it(queries: list[str]) -> None:
    text = " ".join(queries)
    for one in (
        "arriving",
        "lag_seconds",
        "tasks",
        "rescales_total",
        "budget_spent",
        "price",
        "decision_seconds",
        "metrics_age",
    ):
        assert one in text, one


def test_panels_do_not_overlap_and_have_a_unit(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] not in ("row", "table", "state-timeline"):
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed; apt-get install prometheus")
def test_prometheus_parses_every_query(queries: list[str], tmp_path: Path) -> None:
    expressions = [re.sub(r"label_values\((.*), \w+\)", r"\1", query) for query in queries]
    filled = [one.replace("$__rate_interval", "5m").replace("$job", "clicks") for one in expressions]
    rules = [{"record": f"sluice:query:{number}", "expr": one} for number, one in enumerate(filled)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
