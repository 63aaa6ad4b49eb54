"""`sluice thresholds` as people and machines call it."""

import json
from pathlib import Path

import pytest

from pipelines.cli import run
from pipelines.store.workspace import Workspace


@pytest.mark.slow
def test_people_get_a_table_and_machines_one_document(
    planned_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(planned_workspace.local_folder())
    command = ["thresholds", "nexmark-q5", "--rate", "1000000", "--lowest", "0.9", "--highest", "1.1"]
    assert run([*command, "--workspace", folder]) == 0
    out, err = capsys.readouterr()
    assert all(word in out for word in ("900,000", "1,000,000", "1,100,000", "seconds"))
    assert "3 of 3 scalings to tune, on Spark" in err
    assert f"table: file://{folder}/thresholds/nexmark-q5/" in err

    assert run([*command, "--workspace", folder, "--json"]) == 0
    out, err = capsys.readouterr()
    made = json.loads(out)
    assert (made["job"], made["tuned"], len(made["rows"])) == ("nexmark-q5", 0, 3)
    assert set(made["rows"][0]["thresholds"]) == {"cpu", "io", "net"}
    assert Path(made["uri"].removeprefix("file://")).is_dir()
    assert "0 tuned now" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nexmark-q5", "--step", "0"], "'--step'"),
        (["nexmark-q5", "--lowest", "2"], "'--lowest'"),
        (["nexmark-q5", "--rate", "nan"], "'--rate'"),
        (["nexmark-q55"], "nexmark-q5"),
        (["nexmark-q5"], "sluice plan"),
    ],
)
def test_wrong_requests_are_reported_in_words(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["thresholds", *options, "--workspace", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert (out, message in err, "Traceback" in err) == ("", True, False)
