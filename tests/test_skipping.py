"""Where nothing may be skipped, a missing program fails the tests that need it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
NEEDS_PROMETHEUS = "tests/deployment/test_prometheus.py"


@pytest.mark.parametrize(
    ("settings", "code", "said"), [({}, 0, "skipped"), ({"SLUICE_TESTS_SKIP_NOTHING": "1"}, 1, "errors")]
)
def test_tests_of_a_missing_program_are_skipped_only_where_that_is_allowed(
    root: Path, tmp_path: Path, settings: dict[str, str], code: int, said: str
) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SLUICE_TESTS"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rsE", NEEDS_PROMETHEUS],
        cwd=root,
        env=inherited | settings | {"PATH": str(tmp_path)},  # where no program is
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout
    assert f" {said} in " in done.stdout and "passed" not in done.stdout
    assert "Prometheus is not installed; apt-get install prometheus" in done.stdout
