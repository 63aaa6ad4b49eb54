"""`sluice place` and `sluice tune` on files: what is printed, and how wrong input is refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import run

Q1_SLIDING = {
    "name": "q1-sliding",
    "operators": [
        {"name": "source", "parallelism": 2, "cpu": 0.06, "io": 0.0, "net": 1880.0},
        {"name": "map", "parallelism": 5, "cpu": 0.43, "io": 0.0, "net": 154.0},
        {"name": "window", "parallelism": 8, "cpu": 0.74, "io": 17067.0, "net": 361.0, "memory_mb": 158},
        {"name": "sink", "parallelism": 1, "cpu": 0.02, "io": 0.0, "net": 0.0},
    ],
    "edges": [
        {"from": "source", "to": "map", "partitioning": "rebalance"},
        {"from": "map", "to": "window", "partitioning": "hash"},
        {"from": "window", "to": "sink", "partitioning": "rebalance"},
    ],
}
FOUR_BY_FOUR = {"count": 4, "slots": 4}
Sluice = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sluice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Sluice:
    """Run a command on a dataflow and a cluster; its exit code, standard output and standard error."""

    def command(name: str, *options: str, graph: Any = Q1_SLIDING, cluster: Any = FOUR_BY_FOUR) -> tuple[int, str, str]:
        files = tmp_path / "graph.json", tmp_path / "cluster.json"
        for file, content in zip(files, (graph, cluster), strict=True):
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        capfd.readouterr()
        code = run([name, *map(str, files), *options])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return command


def with_operator(**changes: Any) -> dict[str, Any]:
    """Q1-sliding with its window changed."""
    operators = [o | changes if o["name"] == "window" else o for o in Q1_SLIDING["operators"]]
    return {**Q1_SLIDING, "operators": operators}


def test_count(sluice: Sluice):
    code, out, _ = sluice("place", "--count", "--json")
    assert (code, json.loads(out)) == (0, {"plans": 80})
    assert sluice("place", "--count")[1] == "80 distinct plans\n"


@pytest.mark.parametrize("policy", ["caps", "default", "evenly", "random", "odrp"])
def test_place(sluice: Sluice, policy: str):
    code, out, err = sluice("place", "--policy", policy, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert sum(sum(tasks.values()) for tasks in answer["placement"].values()) == 16
    assert all(sum(tasks.values()) == 4 for tasks in answer["placement"].values())
    assert set(answer["cost"]) == {"cpu", "io", "net"}
    proves = policy in ("caps", "odrp")
    assert answer["status"] == ("optimal" if proves else "feasible")
    assert answer["gap"] == (pytest.approx(0, abs=1e-3) if proves else None)
    assert answer["seconds"] >= 0


def test_place_within_thresholds(sluice: Sluice):
    code, out, _ = sluice("place", "--thresholds", "cpu=0.35,net=0.6", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["thresholds"] == {"cpu": 0.35, "io": 1.0, "net": 0.6}
    assert answer["cost"]["cpu"] <= 0.35
    assert answer["cost"]["net"] <= 0.6


def test_tune(sluice: Sluice):
    code, out, _ = sluice("tune", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["single"]["io"] == 0  # two windows on each of the four workers
    assert answer["single_proved"] == {"cpu": True, "io": True, "net": True}
    assert all(answer["cost"][d] <= answer["thresholds"][d] + 1e-9 for d in ("cpu", "io", "net"))


@pytest.mark.slow
def test_the_front(sluice: Sluice):
    code, out, err = sluice("tune", "--front", "--json")
    front = json.loads(out)
    assert (code, err, front["status"], front["step"], front["open_corners"]) == (0, "", "optimal", 0, [])
    costs = [tuple(point["cost"].values()) for point in front["points"]]
    assert costs == sorted(costs)
    assert all(sum(sum(tasks.values()) for tasks in point["placement"].values()) == 16 for point in front["points"])
    coarse = json.loads(sluice("tune", "--front", "--step", "0.9", "--json")[1])
    assert (coarse["step"], len(coarse["points"]) <= len(costs)) == (0.9, True)
    table = sluice("tune", "--front")[1]
    assert "optimal within a step of 0" in table and f"{costs[0][0]:.5f}" in table
    assert sluice("tune", "--step", "0.1")[0] == 2


def test_tables_for_people(sluice: Sluice):
    code, out, _ = sluice("place")
    assert code == 0
    assert all(word in out for word in ("tm-4", "window", "4/4", "threshold", "optimal"))
    assert all(word in sluice("tune")[1] for word in ("least alone", "proved", "relaxation"))


def test_yaml_is_read_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    graph, cluster = tmp_path / "graph.yaml", tmp_path / "cluster.yaml"
    graph.write_text("operators:\n  - {name: a, parallelism: 10, cpu: 1, io: 0, net: 0}\n")
    cluster.write_text("count: 4\nslots: 4\n")
    assert run(["place", str(graph), str(cluster), "--count", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"plans": 7}


@pytest.mark.parametrize(
    ("options", "changes", "sentence"),
    [
        ([], {"cluster": {"count": 3, "slots": 5}}, "16 tasks need as many slots, but the cluster has 15"),
        ([], {"cluster": {**FOUR_BY_FOUR, "memory_mb": 100}}, "a task of 'window' needs 158 MiB"),
        ([], {"cluster": {**FOUR_BY_FOUR, "memory_mb": 300}}, "the tasks need 1264 MiB together"),
        (["--policy", "evenly"], {"cluster": {**FOUR_BY_FOUR, "memory_mb": 300}}, "1264 MiB together"),
        (["--thresholds", "cpu=0.01"], {}, "no placement meets the thresholds cpu=0.01, io=1, net=1 (proved)"),
    ],
)
def test_no_feasible_answer(sluice: Sluice, options: list[str], changes: dict[str, Any], sentence: str):
    code, out, err = sluice("place", *options, "--json", **changes)
    assert (code, out) == (3, "")
    assert err.startswith("no feasible answer: ") and sentence in err
    assert err.count("\n") == 1


def test_memory_that_fits_nowhere_though_it_would_in_sum(sluice: Sluice):
    graph = with_operator(memory_mb=600.0, parallelism=3)
    code, _, err = sluice("tune", graph=graph, cluster={"count": 2, "slots": 8, "memory_mb": 1000})
    assert code == 3
    assert "do not fit the memory of the workers" in err


def test_memory_that_fits_in_one_way_only(sluice: Sluice):
    """Seven windows of 90 MiB go one to each worker of 91 MiB."""
    graph = with_operator(memory_mb=90.0, parallelism=7)
    code, out, _ = sluice("place", "--json", graph=graph, cluster={"count": 7, "slots": 4, "memory_mb": 91})
    assert code == 0
    assert [tasks["window"] for tasks in json.loads(out)["placement"].values()] == [1] * 7


def test_out_of_time_is_a_failure_that_shows_the_closest_plan(sluice: Sluice):
    """1,024 tasks and thresholds that nothing reaches, too tight to be excluded in a microsecond."""
    published = json.loads((Path(__file__).parents[3] / "data" / "capsys" / "q2_scaled.json").read_text())
    parallelism = [48, 390, 48, 48, 292, 198]
    operators = [
        {key: value for key, value in o.items() if key != "base"} | {"parallelism": p}
        for o, p in zip(published["operators"], parallelism, strict=True)
    ]
    graph = {"operators": operators, "edges": published["edges"]}
    options = ["--thresholds", "cpu=0.0001,io=0.0158,net=0.2", "--time-limit", "0.000001", "--json"]
    code, out, err = sluice("place", *options, graph=graph, cluster={"count": 16, "slots": 64})
    assert code == 1
    assert json.loads(out)["status"] == "unknown"
    assert err.startswith("failed: no placement within the thresholds was found")


SECOND = {"name": "second", "operators": [{"name": "source", "parallelism": 2, "cpu": 1.0, "io": 0.0, "net": 0.0}]}
TWO_JOBS = {"dataflows": [{**Q1_SLIDING, "name": "first"}, SECOND]}


def test_several_jobs_are_placed_as_one_problem(sluice: Sluice):
    code, out, _ = sluice("place", "--json", graph=TWO_JOBS, cluster={"count": 3, "slots": 6})
    answer = json.loads(out)
    assert code == 0
    assert [sum(tasks.values()) for tasks in answer["placement"].values()] == [6, 6, 6]
    assert {name.partition(".")[0] for tasks in answer["placement"].values() for name in tasks} == {"first", "second"}
    assert {job: sum(sum(t.values()) for t in placed.values()) for job, placed in answer["jobs"].items()} == {
        "first": 16,
        "second": 2,
    }
    assert {name for tasks in answer["jobs"]["second"].values() for name in tasks} == {"source"}
    assert "jobs" in json.loads(sluice("tune", "--json", graph=TWO_JOBS, cluster={"count": 3, "slots": 6})[1])


def test_plans_of_two_jobs_are_counted_together(sluice: Sluice):
    """Two tasks of each of two jobs, on two workers of two slots: {xy, xy} or {xx, yy}."""
    both = {"dataflows": [{**SECOND, "name": "x"}, {**SECOND, "name": "y"}]}
    assert json.loads(sluice("place", "--count", "--json", graph=both, cluster={"count": 2, "slots": 2})[1]) == {
        "plans": 2
    }


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"dataflows": []}, "dataflows"),
        ({"dataflows": [SECOND, SECOND]}, "'second' occurs 2 times; give each job its own name"),
        ({"dataflows": [{**SECOND, "operators": []}]}, "dataflows.0"),
        ({"dataflows": [{**SECOND, "name": "n" * 119}]}, "has 126; shorten one"),
    ],
)
def test_wrong_files_of_several_jobs_are_refused(sluice: Sluice, graph: Any, message: str):
    code, out, err = sluice("place", "--json", graph=graph)
    assert (code, out) == (2, "")
    assert message in err and "Traceback" not in err


def test_a_hot_task_is_placed_as_a_group_of_its_own(sluice: Sluice):
    """Eight windows on four workers, one of them as heavy as the other seven together: it has a worker for itself."""
    graph = {"operators": [{"name": "w", "parallelism": 8, "cpu": 1.0, "io": 0, "net": 0, "skew": [1] * 7 + [7]}]}
    cluster = {"count": 4, "slots": 4}
    answer = json.loads(sluice("place", "--json", graph=graph, cluster=cluster)[1])
    tasks = sorted(sum(w.values()) for w in answer["placement"].values())
    assert (tasks, {name for w in answer["placement"].values() for name in w}) == ([1, 2, 2, 3], {"w"})
    hot = [subtasks["w"] for subtasks in answer["subtasks"].values() if 7 in subtasks["w"]]
    assert hot == [[7]]
    assert sorted(i for subtasks in answer["subtasks"].values() for i in subtasks["w"]) == list(range(8))
    assert "w.g1" in sluice("place", graph=graph, cluster=cluster)[1]
    tuned = json.loads(sluice("tune", "--json", graph=graph, cluster=cluster)[1])
    assert sorted(sum(w.values()) for w in tuned["placement"].values()) == [1, 2, 2, 3]
    points = json.loads(sluice("tune", "--front", "--json", graph=graph, cluster=cluster)[1])["points"]
    assert [sorted(w["w"] for w in point["placement"].values()) for point in points] == [[1, 2, 2, 3]]


def test_tables_fit_80_columns_and_name_every_task(sluice: Sluice, monkeypatch: pytest.MonkeyPatch):
    """Two jobs of four operators each with loads of nine digits: no column for each operator, nothing is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    jobs = [with_operator(io=123_456_789.0) | {"name": name} for name in ("advertising", "recommendation")]
    code, out, err = sluice("place", graph={"dataflows": jobs}, cluster={"count": 8, "slots": 4})
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines()) and "…" not in out
    tasks = re.findall(r"(advertising|recommendation)\.window (\d)", out)
    assert sum(int(number) for _, number in tasks) == 16


def test_equal_shares_change_nothing(sluice: Sluice):
    cost = json.loads(sluice("place", "--json")[1])["cost"]
    assert json.loads(sluice("place", "--json", graph=with_operator(skew=[2.0] * 8))[1])["cost"] == cost


def test_skew_of_one_job_of_several(sluice: Sluice):
    skewed = {**TWO_JOBS, "dataflows": [with_operator(skew=[8] + [1] * 7) | {"name": "first"}, SECOND]}
    answer = json.loads(sluice("place", "--json", graph=skewed, cluster={"count": 3, "slots": 6})[1])
    assert sum(tasks.get("window", 0) for tasks in answer["jobs"]["first"].values()) == 8
    assert sorted(i for w in answer["subtasks"].values() for i in w.get("first.window", [])) == list(range(8))


def test_shared_slots_hold_a_task_of_each_operator(sluice: Sluice):
    """16 tasks in 8 slots: as many as the window has tasks."""
    shared, cluster = with_operator(slot_sharing_group="default"), {"count": 4, "slots": 2}
    assert sluice("place", "--json", cluster=cluster)[0] == 3
    code, out, err = sluice("place", "--json", graph=shared, cluster=cluster)
    placement = json.loads(out)["placement"]
    assert (code, err) == (0, "")
    assert [tasks["window"] for tasks in placement.values()] == [2, 2, 2, 2]
    assert all(number <= 2 for tasks in placement.values() for number in tasks.values())
    assert sluice("tune", "--json", graph=shared, cluster=cluster)[0] == 0


def test_a_placement_that_needs_too_many_shared_slots_is_reported(sluice: Sluice):
    """Windows in a group of their own: 8 + 5 slots are needed, and the first worker gets its 8 places filled."""
    graph, cluster = with_operator(slot_sharing_group="windows"), {"count": 4, "slots": 3}
    code, out, err = sluice("place", "--policy", "default", "--json", graph=graph, cluster=cluster)
    assert code == 1
    assert sum(sum(tasks.values()) for tasks in json.loads(out)["placement"].values()) == 16
    assert "slots of worker 'tm-1', which has 3" in err


def test_jobs_share_no_slots_with_each_other(sluice: Sluice):
    """Two jobs of two tasks each, one with a group: 2 + 2 slots are needed, so each of two workers of 2 slots is full."""
    both = {"dataflows": [{**SECOND, "name": "x"}, {**SECOND, "name": "y"}]}
    both["dataflows"][0] = {**SECOND, "name": "x", "operators": [SECOND["operators"][0] | {"slot_sharing_group": "a"}]}
    code, out, _ = sluice("place", "--json", graph=both, cluster={"count": 2, "slots": 2})
    assert (code, [sum(t.values()) for t in json.loads(out)["placement"].values()]) == (0, [2, 2])


@pytest.mark.parametrize(("command", "option"), [("place", "--count"), ("tune", "--front")])
def test_shared_slots_are_refused_where_every_plan_counts(sluice: Sluice, command: str, option: str):
    code, _, err = sluice(command, option, graph=with_operator(slot_sharing_group="default"))
    assert (code, "leave the groups out" in err) == (2, True)


CYCLE = {**Q1_SLIDING, "edges": [*Q1_SLIDING["edges"], {"from": "sink", "to": "source", "partitioning": "hash"}]}
UNKNOWN_END = {**Q1_SLIDING, "edges": [{"from": "source", "to": "nowhere", "partitioning": "hash"}]}
UNEQUAL_FORWARD = {**Q1_SLIDING, "edges": [{"from": "source", "to": "map", "partitioning": "forward"}]}
TWICE = {**Q1_SLIDING, "operators": [*Q1_SLIDING["operators"], Q1_SLIDING["operators"][0]]}


@pytest.mark.parametrize("command", ["place", "tune"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graph": CYCLE}, "must not have a cycle"),
        ({"graph": UNKNOWN_END}, "'nowhere', which does not exist"),
        ({"graph": UNEQUAL_FORWARD}, "a forward edge needs equal parallelism"),
        ({"graph": TWICE}, "operator names must be unique"),
        ({"graph": with_operator(cpu=-0.1)}, "(window).cpu'"),
        ({"graph": with_operator(net="NaN")}, "(window).net'"),
        ({"graph": with_operator(parallelism=0)}, "(window).parallelism'"),
        ({"graph": with_operator(memory_mb=-1)}, "(window).memory_mb'"),
        ({"graph": with_operator(cores=1)}, "(window).cores'"),
        ({"graph": with_operator(skew=[1, 2])}, "a number for each of its 8 tasks, but has 2"),
        ({"graph": with_operator(skew=[0] * 8)}, "all its numbers are 0"),
        ({"graph": with_operator(skew=[-1] * 8)}, "(window).skew.0'"),
        ({"graph": with_operator(slot_sharing_group="")}, "(window).slot_sharing_group'"),
        ({"graph": {"operators": []}}, "operators"),
        ({"graph": "{"}, "not valid JSON"),
        ({"cluster": {"count": 4, "slots": 0}}, "workers.0.slots"),
        ({"cluster": {"count": 0, "slots": 4}}, "'count' must be a whole number"),
        ({"cluster": {"workers": []}}, "workers"),
        ({"cluster": {"count": 4, "slots": 4, "cores": -1}}, "workers.0.cores"),
        (
            {"cluster": {"workers": [{"name": "x", "slots": 9}, {"name": "x", "slots": 9}]}},
            "worker names must be unique",
        ),
    ],
)
def test_wrong_files_are_refused(sluice: Sluice, command: str, changes: dict[str, Any], message: str):
    code, out, err = sluice(command, "--json", **changes)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--thresholds", "cpu"], "cpu=A,io=B,net=C"),
        (["--thresholds", "disk=0.1"], "cpu=A,io=B,net=C"),
        (["--thresholds", "cpu=0.1,cpu=0.2"], "each dimension at most once"),
        (["--thresholds", "cpu=much"], "must be a number"),
        (["--thresholds", "cpu=-0.1"], "0 <= threshold <= 1"),
        (["--thresholds", "net=1.5"], "0 <= threshold <= 1"),
        (["--thresholds", "io=nan"], "0 <= threshold <= 1"),
        (["--policy", "evenly", "--thresholds", "cpu=0.1"], "go with the policy 'caps'"),
        (["--policy", "best"], "best"),
        (["--time-limit", "0"], "--time-limit"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_wrong_options_are_refused(sluice: Sluice, options: list[str], message: str):
    code, out, err = sluice("place", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_missing_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert run(["place", str(tmp_path / "no.json"), str(tmp_path / "none.json")]) == 2
    assert "does not exist" in capfd.readouterr().err
