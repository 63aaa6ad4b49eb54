"""Compiled kernels are kept on disk where possible, and work where nothing can be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNT = """
import numpy as np
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import tree, count_plans
operators = [{"name": "a", "parallelism": 10, "cpu": 1, "io": 0, "net": 0}]
print(tree.__file__)
print(count_plans(Dataflow.model_validate({"operators": operators}), Cluster.model_validate({"count": 4, "slots": 4})))
print(type(tree.advance._cache).__name__)
"""


@pytest.mark.slow
def test_an_installation_that_nothing_can_be_written_to(tmp_path: Path):
    """A file where the cache folders would be: even root, who may write to read-only folders, cannot make them."""
    shutil.copytree(ROOT / "models", tmp_path / "models", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "models" / "placement" / "__pycache__").write_text("not a folder")
    (tmp_path / "home").write_text("not a folder")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG", "PYTHON"))}
    environment |= {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    file, plans, cache = done.stdout.split()
    assert Path(file).is_relative_to(tmp_path)
    assert (plans, cache) == ("7", "NullCache")
