"""`sluice configure`, `fit` and `size` on the published files, through the command's own entry point."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import EXIT_INFEASIBLE, EXIT_USAGE, run


@pytest.fixture
def data(root: Path) -> Path:
    return root / "tests" / "data" / "streambed"


@pytest.fixture
def measurements(tmp_path: Path) -> Path:
    """Four measurements with the format's own column names."""
    path = tmp_path / "measured.csv"
    path.write_text("memory_mb,task_slots,mst\n8192,4,100\n8192,8,190\n16384,16,410\n16384,32,790\n")
    return path


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """The one JSON document that a successful command prints."""
    assert run([*(str(a) for a in arguments), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_configure_reproduces_the_published_vectors(capsys, data, tmp_path):
    for vector in json.loads((data / "bids2_vectors.json").read_text()):
        instance = tmp_path / "instance.json"
        instance.write_text(json.dumps(vector))  # as published, further keys and all
        answer = run_json(capsys, "configure", "--instance", instance, "--slots", vector["slots_budget_excl_sources"])
        assert list(answer["parallelism"].values()) == vector["paper_cbc_parallelism"]
        assert answer["source_rate"] == pytest.approx(vector["paper_objective"], rel=1e-7)


def test_configure_respects_max_parallelism_and_shows_who_limits(capsys, tmp_path):
    instance = tmp_path / "instance.yaml"
    instance.write_text(
        "operators:\n"
        "- {name: map, true_rate_per_task: 10, records_in_per_source_record: 1, max_parallelism: 2}\n"
        "- {name: sink, true_rate_per_task: 30, records_in_per_source_record: 1}\n"
    )
    assert run_json(capsys, "configure", "--instance", instance, "--slots", 5)["parallelism"] == {"map": 2, "sink": 3}
    assert run(["configure", "--instance", str(instance), "--slots", "5"]) == 0
    table = capsys.readouterr().out
    assert "source rate 20 records/s" in table
    assert "100% (limits)" in table


@pytest.mark.parametrize(("memory", "slots"), [(65536, 1079), (32768, 1069)])
def test_size_gives_table_3_for_q5(capsys, data, memory, slots):
    model = ("--rows", 14, "--model", "log")
    answer = run_json(
        capsys, "size", data / "search_q5.csv", *model, "--memory", memory, "--headroom", 1.1, "--rate", 2.5e6
    )
    assert answer["task_slots"] == slots
    assert answer["interval"]["low"] < slots < answer["interval"]["high"]
    assert answer["task_slots_by_model"]["log"] == slots


@pytest.mark.parametrize(("memory", "slots"), [(8192, 179), (16384, 179), (32768, 179), (65536, 178)])
def test_size_gives_table_3_for_q1(capsys, data, memory, slots):
    model = ("--rows", 10, "--model", "linear")
    answer = run_json(capsys, "size", data / "search_q1.csv", *model, "--memory", memory, "--rate", 160e6)
    assert answer["task_slots"] == slots


def test_size_never_answers_less_than_was_measured(capsys, measurements):
    assert run_json(capsys, "size", measurements, "--memory", 8192, "--rate", 1)["task_slots"] == 4


def test_size_answers_over_all_laws_and_says_what_is_open(capsys, data):
    answer = run_json(capsys, "size", data / "search_q5.csv", "--memory", 65536, "--rate", 2.5e6)
    assert (answer["model"], answer["risk"], answer["headroom"]) == ("stacked", 0.1, None)
    assert sum(answer["weights"].values()) == pytest.approx(1.0)
    assert answer["weights"].keys() <= answer["loocv"].keys()
    low, high = answer["interval"]["low"], answer["interval"]["high"]
    assert low < answer["task_slots"] and (high is None or answer["task_slots"] < high)
    assert answer["sustains"] >= 0.9
    mst = answer["predicted_mst"]
    assert mst["low"] < 2.5e6 < mst["value"] < mst["high"]
    assert answer["task_slots_by_model"].keys() == answer["weights"].keys()
    assert answer["remarks"][0].startswith("the observations do not determine the law")
    helpful = answer["would_help"]
    assert helpful["budget"]["task_slots"] > 48 and helpful["budget"]["memory_mb"] == answer["memory_mb"]
    assert 1 < helpful["ratio_after"] < helpful["ratio_now"]
    assert any(f"measuring {helpful['budget']['task_slots']} slots" in remark for remark in answer["remarks"])


def test_a_headroom_takes_the_place_of_the_risk(capsys, data):
    asked = ("size", data / "search_q5.csv", "--memory", 65536, "--rate", 2.5e6)
    median = run_json(capsys, *asked, "--headroom", 1)
    even = run_json(capsys, *asked, "--risk", 0.5)
    assert (median["risk"], even["headroom"]) == (None, None)
    assert median["task_slots"] == even["task_slots"]
    assert run_json(capsys, *asked, "--headroom", 1.1)["task_slots"] > median["task_slots"]


def test_size_shows_people_the_range_and_what_each_law_says(capsys, data):
    arguments = ["--rows", "14", "--model", "log", "--memory", "4096", "--rate", "2.5e6"]
    assert run(["size", str(data / "search_q5.csv"), *arguments]) == 0
    shown = capsys.readouterr()
    assert "1040 task slots for 2,500,000 records/s" in shown.out
    assert "planned for 1.1 x the rate; needed with 95% probability: " in shown.out
    assert "each law alone: linear 125, log 1040, sqrt 213" in shown.out
    assert "4,096 MiB lies outside of the measured 32,768 to 65,536 MiB" in shown.err


def test_fit_prints_all_errors_and_the_reason(capsys, data):
    answer = run_json(capsys, "fit", data / "search_q5.csv", "--rows", 14, "--model", "log")
    assert answer["model"] == "log"
    regressions = answer["regressions"]
    # Table 4: a -7.6E3, b 5.7E5, c -1.2E6.
    coefficients = {"memory": -7696.08, "slots": 577989.9, "intercept": -1201310.2}
    assert regressions["log"]["coefficients"] == pytest.approx(coefficients)
    errors = {law: regression["loocv"] for law, regression in regressions.items()}
    assert errors == pytest.approx({"linear": 65383.0, "log": 41452.5, "sqrt": 50055.2})
    assert (answer["loocv_rmse"], answer["weights"]) == (pytest.approx(41452.5), {"log": 1.0})
    assert set(answer["loocv"]) == set(answer["log_density"]) == {"linear", "log", "sqrt", "power", "even", "skewed"}
    assert answer["observations"] == 14
    assert answer["reason"]


def test_fit_shows_the_weights_and_streambeds_regressions(capsys, data):
    assert run(["fit", str(data / "search_q5.csv"), "--rows", "22"]) == 0
    shown = capsys.readouterr().out
    assert "stacked by how well each growth law predicts the observations left out: skewed" in shown
    assert "StreamBed's regressions" in shown


@pytest.mark.slow
def test_a_twin_of_the_job_is_weighed_with_the_growth_laws(capsys, data):
    """Hot keys cap q5 below 48 slots and are spread out at 1,000: rows alone do not show that, a simulation does."""
    arguments = ("size", data / "search_q5.csv", "--rate", "2500000", "--memory", "65536")
    alone, beside = run_json(capsys, *arguments), run_json(capsys, *arguments, "--twin", "nexmark-q5")
    assert "twin" not in alone["weights"]
    # The advice rests on the same stack as the slots: a twin leaves less to narrow.
    assert beside["would_help"] is None or beside["would_help"]["ratio_now"] < alone["would_help"]["ratio_now"]
    assert beside["weights"]["twin"] > 0.5
    # Published: 2.5 M/s sustained with 1,079 slots, and 3.75 M/s at most. No growth law alone says anything near.
    assert beside["task_slots_by_model"]["twin"] == pytest.approx(1079, rel=0.25)
    assert not any(850 <= (slots or 0) <= 1350 for slots in alone["task_slots_by_model"].values())


def test_an_unknown_twin_is_refused(capsys, measurements):
    assert run(["size", str(measurements), "--rate", "500", "--memory", "8192", "--twin", "nexmark-q55"]) == EXIT_USAGE
    assert "nexmark-q5" in capsys.readouterr().err


def test_columns_can_be_named(capsys, tmp_path, measurements):
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(measurements.read_text().replace("memory_mb,task_slots,mst", "ram,ts,rate"))
    columns = ("--memory-column", "ram", "--slots-column", "ts", "--mst-column", "rate")
    assert run_json(capsys, "fit", renamed, *columns) == run_json(capsys, "fit", measurements)


def test_a_rate_out_of_reach_has_no_answer(capsys, data):
    arguments = ["--rows", "14", "--model", "log", "--memory", "32768", "--rate", "1e9"]
    assert run(["size", str(data / "search_q5.csv"), *arguments]) == EXIT_INFEASIBLE
    assert "lower the rate, or choose another law" in capsys.readouterr().err


def test_fewer_slots_than_operators_have_no_answer(capsys, data, tmp_path):
    instance = tmp_path / "instance.json"
    instance.write_text(json.dumps(json.loads((data / "bids2_vectors.json").read_text())[-1]))
    assert run(["configure", "--instance", str(instance), "--slots", "8"]) == EXIT_INFEASIBLE
    assert "9 operators do not fit in 8 slots" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("memory_mb,", "ram,", "no column 'memory_mb' or 'tm_memory_mb'; its columns are ram, task_slots, mst"),
        ("190", "fast", "line 3, column 'mst': must be a number, but got 'fast'"),
        ("190", "nan", "line 3, column 'mst': must be finite and above 0, but got 'nan'"),
        ("190", "inf", "line 3, column 'mst': must be finite and above 0, but got 'inf'"),
        ("190", "", "line 3, column 'mst': must be a number, but got ''"),
        ("190", "0", "line 3, column 'mst': must be finite and above 0, but got '0'; leave the row out, and measure"),
        (",8,", ",0,", "line 3, column 'task_slots': must be a whole number of at least 1, but got '0'"),
        (",8,", ",8.5,", "line 3, column 'task_slots': must be a whole number of at least 1, but got '8.5'"),
        ("\n8192,8,190\n16384,16,410", "", "at least 3 observations, but got 2; measure more budgets"),
        ("\n8192,8,190", "\n8192,8,190,7", "line 3: the header has 3 fields"),
    ],
)
def test_unusable_measurements_are_named(capsys, measurements, old, new, message):
    measurements.write_text(measurements.read_text().replace(old, new, 1))
    for command in (["fit"], ["size", "--rate", "500", "--memory", "8192"]):
        assert run([*command, str(measurements)]) == EXIT_USAGE
        assert message in capsys.readouterr().err


def test_at_most_five_faults_are_shown(capsys, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("memory_mb,task_slots,mst\n" + "x,y,z\n" * 4)
    assert run(["fit", str(path)]) == EXIT_USAGE
    message = capsys.readouterr().err
    assert message.count("must be a number") == 5
    assert "... and 7 more" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "missing.csv"], "missing.csv does not exist"),
        (["fit", "{file}", "--rows", "5"], "has 4 rows, so 1 to 4 of them can be used, but got 5"),
        (["fit", "{file}", "--rows", "0"], "but got 0"),
        (["fit", "{file}", "--mst-column", "speed"], "no column 'speed'; its columns are memory_mb, task_slots, mst"),
        (["fit", "{file}", "--model", "cubic"], "cubic"),
        (["size", "{file}", "--rate", "nan", "--memory", "8192"], "rate must be finite and above 0"),
        (["size", "{file}", "--rate", "500", "--memory", "-1"], "memory must be finite and above 0"),
        (["size", "{file}", "--rate", "500", "--memory", "8192", "--headroom", "0.5"], "headroom must be 1 to 1000"),
        (["size", "{file}", "--rate", "500", "--memory", "8192", "--risk", "0"], "risk must be above 0"),
        (
            ["size", "{file}", "--rate", "500", "--memory", "8192", "--risk", "0.1", "--headroom", "1.1"],
            "leave one out",
        ),
        (["size", "{file}", "--rate", "500"], "--memory"),
        (["configure", "--instance", "{file}", "--slots", "3"], "measured.csv"),
    ],
)
def test_unusable_arguments_are_named(capsys, measurements, arguments, message):
    assert run([a.format(file=measurements) for a in arguments]) == EXIT_USAGE
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_size_states_task_managers_and_their_price(capsys, data, tmp_path):
    cloud = tmp_path / "cloud.yaml"
    cloud.write_text(
        "kinds:\n"
        "- {name: small, slots: 4, cores: 4, memory_mb: 16384, price_per_hour: 0.25}\n"
        "- {name: large, slots: 16, cores: 16, memory_mb: 65536, price_per_hour: 0.9}\n"
    )
    asked = ["size", data / "search_q5.csv", "--rows", 14, "--model", "log", "--memory", 65536, "--rate", 4e5]
    plain = run_json(capsys, *asked)
    assert (plain["task_slots"], plain["interval"]["low"], plain["interval"]["high"]) == (19, 17, 23)
    assert "resources" not in plain
    assert run([*(str(a) for a in asked), "--slots-per-worker", "16"]) == 2
    assert "--slots-per-worker says how a TaskManager of --cluster is divided" in capsys.readouterr().err
    # 5 small workers for 19 slots and 17, 6 for 23; two large ones cost 1.8.
    asked += ["--cluster", cloud]
    found = run_json(capsys, *asked, "--slots-per-worker", 16)["resources"]
    assert (found["kind"], found["task_managers"], found["total_cores"], found["total_memory_mb"]) == (
        ("small", 5, 20, 5 * 16384)
    )
    assert found["price"] == {"currency": "USD", "per_hour": 1.25, "low": 1.25, "high": 1.5}
    # A TaskManager of 65,536 MiB, however many slots it has, fits the large kind only.
    assert run_json(capsys, *asked)["resources"]["kind"] == "large"
    assert run([*(str(a) for a in asked), "--slots-per-worker", "16"]) == 0
    shown = capsys.readouterr().out
    assert "5 TaskManagers of kind small: 20 cores, 4 each" in shown
    assert "1.25 USD per hour (1.25 to 1.50 over the range of the task slots needed)" in shown


def test_size_says_nothing_of_money_without_prices(capsys, data):
    asked = ["size", data / "search_q5.csv", "--rows", 14, "--memory", 65536, "--rate", 4e5, "--cluster", "production"]
    assert run_json(capsys, *asked)["resources"]["price"] is None
    assert run([str(a) for a in asked]) == 0
    shown = capsys.readouterr().out
    assert "2 TaskManagers: 32 cores, 16 each" in shown and "USD" not in shown


def test_size_of_more_than_the_cluster_has_is_infeasible(capsys, data):
    asked = ["size", data / "search_q5.csv", "--rows", 14, "--memory", 65536, "--rate", 2.5e6, "--cluster", "testbed"]
    assert run([str(a) for a in asked]) == EXIT_INFEASIBLE
    assert "but cluster 'testbed' has 48" in capsys.readouterr().err
