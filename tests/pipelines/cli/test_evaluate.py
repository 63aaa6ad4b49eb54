"""`sluice evaluate`, through the command's own entry point: short replays on the real simulator."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.cli import EXIT_INFEASIBLE, EXIT_USAGE, run


@pytest.fixture
def evaluate(tmp_path: Path):
    def call(*options: str, policy: str = "ds2", workload: str = "cosine") -> int:
        given = [
            "--job",
            "nexmark-q1",
            "--workload",
            workload,
            "--policy",
            policy,
            "--minutes",
            "4",
            "--no-log",
            "--burn-in-minutes",
            "0",
        ]
        return run(["evaluate", *given, "--processes", "1", "--workspace", str(tmp_path / "workspace"), *options])

    return call


@pytest.mark.slow
def test_people_see_who_served_best_and_why(capsys, evaluate):
    assert evaluate(policy="ds2,hpa-cpu", workload="cosine,steps") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("nexmark-q1")] == [
        "nexmark-q1, cosine, in-place",
        "nexmark-q1, steps, in-place",
    ]
    row, reason = [line for line in lines if line.startswith("* ")][:2]
    assert reason.startswith(f"* Run {row.split()[1]}: it holds 99 % of records within 10 s")
    assert lines[-1].startswith("results of all replays: file:///")


@pytest.mark.slow
def test_machines_see_every_metric(capsys, evaluate):
    assert evaluate("--seeds", "2", "--set", "ds2.over_provisioning_factor=0.2", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(cell["policy"], cell["seed"]) for cell in answer["cells"]] == [("ds2", 1066), ("ds2", 1067)]
    (ranking,) = answer["rankings"]
    assert (ranking["job"], ranking["workload"], ranking["winner"]) == ("nexmark-q1", "cosine", "ds2")
    (score,) = ranking["policies"]
    assert (score["knob"], score["run_with"], score["hypervolume_rank"]) == ("over_provisioning_factor", 0.2, 1)
    assert [v["sentence"] for v in answer["verdicts"]] == [ranking["reason"]]
    cell = answer["cells"][0]
    assert 0.5 < cell["throughput_ratio"] <= 1 + 1e-9
    assert len(cell["rescale_log"]) == cell["rescales"] + cell["refusals"]
    table = pq.read_table(answer["results"].removeprefix("file://"))
    assert table["task_hours"].to_pylist() == [cell["task_hours"] for cell in answer["cells"]]


@pytest.mark.slow
def test_a_sweep_draws_a_frontier(capsys, evaluate):
    assert evaluate("--sweep", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    values = [0.0, 0.1, 0.2, 0.5, 1.0, 2.0]
    assert [cell["settings"]["over_provisioning_factor"] for cell in answer["cells"]] == values
    (score,) = answer["rankings"][0]["policies"]
    assert [point["value"] for point in score["points"]] == values and score["frontier"]


def test_a_file_of_rates_is_replayed(capsys, evaluate, tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("time_s,rate\n0,1000\n30,2000\n")
    assert evaluate("--json", workload=str(path)) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["workload"], cell["input_rate"]) == ("rates", 1500)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--policy", "guess"], EXIT_USAGE, "there is no policy 'guess'; there are"),
        (["--policy", "ds2,"], EXIT_USAGE, "--policy must be names with commas between them"),
        (["--workload", "sine"], EXIT_USAGE, "there is no workload 'sine'"),
        (["--job", "nexmark-q99"], EXIT_USAGE, "no job 'nexmark-q99'"),
        (["--cluster", "moon"], EXIT_USAGE, "no cluster 'moon'"),
        (["--minutes", "0"], EXIT_USAGE, "--minutes"),
        (["--peak-rate", "-1"], EXIT_USAGE, "--peak-rate"),
        (["--set", "ds2"], EXIT_USAGE, "--set must be POLICY.SETTING=VALUE"),
        (["--set", "flink.x=1"], EXIT_USAGE, "settings for 'flink', which is not among the policies"),
        (["--attainment", "1"], EXIT_USAGE, "attainment"),
        (["--placement", "anyhow"], EXIT_USAGE, "--placement"),
        (["--managed-memory", "9999"], EXIT_INFEASIBLE, "cannot start with 9999 MiB of managed memory"),
    ],
)
def test_unusable_options_are_named(capsys, evaluate, options, code, message):
    assert evaluate(*options) == code
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err and captured.out == ""


@pytest.mark.slow
def test_a_run_that_was_killed_leaves_no_process_and_goes_on(tmp_path):
    options = ["--job", "nexmark-q1", "--workload", "cosine", "--policy", "ds2", "--seeds", "200"]
    command = [sys.executable, "-m", "pipelines.cli", "evaluate", *options, "--processes", "2", "--workspace", "."]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 300
        while len(_results(tmp_path)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGKILL)
    kept = _results(tmp_path)
    assert len(kept) >= 2 and len(children) >= 2
    while any(map(_is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_is_running, children))
    again = ["--seeds", str(len(kept)), "--processes", "1", "--workspace", str(tmp_path)]
    assert run(["evaluate", *options[:-2], *again, "--no-log"]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def _results(folder: Path) -> dict[Path, int]:
    """When each cell's result was written."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("arena/cells/*/result.json")}


def _is_running(pid: str) -> bool:
    """Whether the process runs, and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
