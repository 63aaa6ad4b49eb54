"""The Makefile: parameters reach the DAGs, and each target of tests selects what its help says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def _commands(root: Path, target: str, *variables: str) -> str:
    """What a target would run."""
    command = ["make", "--dry-run", "--no-print-directory", target, *variables]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("target", ["plan", "replan"])
def test_further_parameters_reach_the_dag(root: Path, target: str) -> None:
    commands = _commands(root, target, "JOB=q", "RATE=5", "WITH=seed=3 headroom=1.2")
    assert re.search(r"job='q' rate='5' seed=3 headroom=1\.2$", commands, re.MULTILINE)


def test_test_targets_select_by_marker_and_continuous_integration_runs_make_test(root: Path) -> None:
    assert "-m 'not slow and not long' tests" in _commands(root, "check")
    assert "-m long tests" in _commands(root, "test-all")
    assert "exec make test" in (root / ".ci" / "run").read_text()


def test_only_fuzzing_draws_new_examples(root: Path) -> None:
    probe = "import conftest; from hypothesis import settings; print(settings.default.derandomize)"
    drawn = {
        profile: subprocess.run(
            [sys.executable, "-c", probe], cwd=root / "tests", env=_environment(profile), capture_output=True, text=True
        ).stdout.strip()
        for profile in ("", "new")
    }
    assert drawn == {"": "True", "new": "False"}
    assert "HYPOTHESIS_PROFILE=new" in _commands(root, "fuzz")


def _environment(profile: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_PROFILE"}
    return kept | ({"HYPOTHESIS_PROFILE": profile} if profile else {})
