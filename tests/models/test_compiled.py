"""Compiled kernels are kept on disk where possible, and work where nothing can be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

from models.compiled import compiled_in_place

ROOT = Path(__file__).parents[2]
COUNT = """
import numpy as np
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import count_plans
from models.placement.kernels import tree
operators = [{"name": "a", "parallelism": 10, "cpu": 1, "io": 0, "net": 0}]
print(tree.__file__)
print(count_plans(Dataflow.model_validate({"operators": operators}), Cluster.model_validate({"count": 4, "slots": 4})))
print(type(tree.advance._cache).__name__)
"""


@pytest.mark.slow
def test_an_installation_that_nothing_can_be_written_to(tmp_path: Path):
    """A file where the cache folders would be: even root, who may write to read-only folders, cannot make them."""
    shutil.copytree(ROOT / "models", tmp_path / "models", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "models" / "placement" / "kernels" / "__pycache__").write_text("not a folder")
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


CALLEE = """
from models.compiled import compiled
FACTOR = {factor}

@compiled
def callee(x):
    return x + {summand}
"""
CALLER = """
from models.compiled import compiled
from kernels.callee import FACTOR, callee

@compiled
def caller(x):
    return FACTOR * callee(x)

if __name__ != "__main__":
    print(caller(1), sum(caller.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_an_edited_callee_or_constant_changes_the_answer_of_its_caller(tmp_path: Path):
    """The second run loads the machine code of the first; the caller's own file is never touched."""
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    answers = []
    for factor, summand in ((2, 10), (2, 10), (2, 30), (5, 30)):
        (package / "callee.py").write_text(CALLEE.format(factor=factor, summand=summand))
        command = [sys.executable, "-c", "import kernels.caller"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.split())
    assert answers == [["22", "0"], ["22", "1"], ["62", "0"], ["155", "0"]]


NAMED = """
from typing import NamedTuple
from models.compiled import compiled

class {name}(NamedTuple):
    x: int

@compiled
def kernel(point):
    return point.x + 1
"""


@pytest.mark.slow
def test_a_renamed_class_of_an_argument_compiles_again(tmp_path: Path):
    """The index on disk names the class that the arguments had."""
    (tmp_path / "kernels").mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
    for name in ("Before", "After"):
        (tmp_path / "kernels" / "named.py").write_text(NAMED.format(name=name))
        call = f"from kernels.named import {name}, kernel; print(kernel({name}(1)))"
        command = [sys.executable, "-c", call]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.stdout == "2\n", done.stderr


def test_a_kernel_in_place_changes_its_array_and_makes_none():
    """numba says so where a kernel needs memory of its own."""

    def double(values: np.ndarray) -> None:
        for i in range(len(values)):
            values[i] *= 2.0

    def doubled(values: np.ndarray) -> np.ndarray:
        return np.zeros(len(values)) + 2.0 * values

    given = np.array([1.0, 2.5])
    compiled_in_place(double)(given)
    assert given.tolist() == [2.0, 5.0]
    with pytest.raises(TypingError):
        compiled_in_place(doubled)(given)
