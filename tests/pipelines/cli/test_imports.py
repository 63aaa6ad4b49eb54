"""What commands import: the first answer must not wait for packages that it does not need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SEARCH_Q5 = ROOT / "tests/data/streambed/search_q5.csv"
HEAVY = {
    *("airflow", "great_expectations", "matplotlib", "mlflow", "numba", "pandas", "plotly", "pyspark"),
    *("networkx", "pyarrow", "scipy", "sklearn", "skopt", "sqlalchemy", "statsforecast"),
}
"""Packages that take from a tenth of a second to several seconds to import."""
LIGHTER = {"fsspec", "httpx", "numpy", "pydantic", "rich", "yaml"}


def imported(*arguments: str, folder: Path, **environment: str) -> set[str]:
    """Top-level packages that are loaded when the command ends."""
    code = (
        "import json, sys\n"
        "from pipelines.cli import run\n"
        "code = run(sys.argv[1:])\n"
        "print(json.dumps([code, sorted({name.partition('.')[0] for name in sys.modules})]), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=120,
    )
    status, packages = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stderr
    return set(packages)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    assert imported(*arguments, folder=tmp_path) & (HEAVY | LIGHTER) == set()


def test_completion_imports_nothing_heavy(tmp_path: Path) -> None:
    asked = {"_SLUICE_COMPLETE": "complete_bash", "COMP_WORDS": "sluice pl", "COMP_CWORD": "1"}
    code = (
        "import sys\n"
        "from pipelines.cli import run\n"
        "run([])\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **asked}
    )
    assert done.stdout.split() == ["plan", "plans", "place"]
    typers_own = {"pydantic"}
    loaded = {name.strip("' ") for name in done.stderr.strip("[]\n").split(",")}
    assert loaded & (HEAVY | LIGHTER) <= typers_own


@pytest.mark.slow
def test_capacity_commands_import_no_package_for_data_or_graphs(tmp_path: Path) -> None:
    (tmp_path / "instance.json").write_text(
        '{"operators": [{"name": "a", "true_rate_per_task": 10, "records_in_per_source_record": 1}]}'
    )
    configured = imported("configure", "--instance", "instance.json", "--slots", "3", folder=tmp_path)
    assert configured & HEAVY == set()
    sized = imported("size", str(SEARCH_Q5), "--rate", "2500000", "--memory", "65536", folder=tmp_path)
    assert sized & HEAVY == {"scipy"}  # Student's t for the interval


def test_scale_imports_only_the_policy_that_decides(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text(
        '{"edges": [["source", "count"]], "source_rates": {"source": 30.0}, "operators": {"count": '
        '{"parallelism": 1, "true_processing_rate": 10.0, "true_output_rate": 0.0}}}'
    )
    assert imported("scale", "--policy", "ds2", "rates.json", folder=tmp_path) & HEAVY == set()
