"""The DAG files parse without errors, and import only what a DAG may, so that they parse quickly."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pyspark", "mlflow", "great_expectations", "skopt", "sklearn", "pandas", "pyarrow", "numba", "plotly")
HOUSE = {"airflow", "pipelines", "models", "sluice_airflow"}
ALSO_USES = {
    "plugins/sluice_airflow/params.py": {"pydantic"},
    "plugins/sluice_airflow/__init__.py": {"flink_client"},
    "plugins/sluice_airflow/connections": {"flink_client", "testbeds"},
    "plugins/sluice_airflow/lineage.py": {"openlineage"},
    "plugins/sluice_airflow/measuring": {"flink_client"},
    "plugins/sluice_airflow/notices": {"pydantic"},
    "plugins/sluice_airflow/embedded": {"rich"},
    "plugins/sluice_airflow/standing": {"httpx", "psutil"},
    "plugins/sluice_pages": {"sluice_pages", "fastapi", "starlette", "jinja2", "plotly", "sqlalchemy"},
    "plugins/sluice_pages_plugin.py": {"sluice_pages"},
}
"""File or folder -> packages that it imports, besides those of `HOUSE`."""

PARSE = f"""
import json, sys
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk
before = set(sys.modules)
bag = DagBag(sys.argv[1])
print("RESULT" + json.dumps({{
    "dags": sorted(bag.dags), "errors": bag.import_errors,
    "heavy": [m for m in {HEAVY!r} if m in sys.modules and m not in before],
}}))
"""


@pytest.fixture(scope="module")
def parsed(root: Path) -> dict:
    """What a fresh process sees when it parses the DAG folder."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(root / "dags")], capture_output=True, text=True, cwd="/", check=True
    )
    return json.loads(done.stdout.split("RESULT")[1])


def test_all_dags_parse_without_errors(parsed: dict) -> None:
    assert parsed["errors"] == {}
    assert parsed["dags"] == [
        "apply_plan",
        "autopilot_jobs",
        "capacity_plan",
        "evaluate_policies",
        "observe_jobs",
        "replan",
        "threshold_table",
        "watch_drift",
    ]


def test_parsing_imports_nothing_heavy(parsed: dict) -> None:
    assert parsed["heavy"] == []


def test_dags_and_plugins_import_only_what_is_listed_for_their_place(root: Path) -> None:
    for file in [*(root / "dags").glob("*.py"), *(root / "plugins").rglob("*.py")]:
        path = file.relative_to(root)
        also = {name for place, names in ALSO_USES.items() if path.is_relative_to(place) for name in names}
        imported = {name.split(".")[0] for name in _imports(file)}
        assert imported - set(sys.stdlib_module_names) <= HOUSE | also, file


def test_dag_files_use_the_task_sdk_alone(root: Path) -> None:
    for file in (root / "dags").glob("*.py"):
        airflow = [name for name in _imports(file) if name.split(".")[0] == "airflow"]
        assert airflow, file
        assert all(name == "airflow.sdk" or name.startswith("airflow.sdk.") for name in airflow), file


def _imports(file: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return plain + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
