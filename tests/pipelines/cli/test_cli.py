"""The frame of the command line: exit codes, one message on standard error, clean JSON on standard output."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from models.errors import Infeasible, InvalidInput, SluiceError
from pipelines import cli
from pipelines.cli import run
from pipelines.cli.commands import COMMANDS, load_command

SLUICE = Path(sys.executable).with_name("sluice")


def sluice(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SLUICE, *arguments], capture_output=True, text=True, cwd=folder, timeout=120)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    first, _, _ = " ".join(load_command(name).help.split()).partition(". ")
    assert first.removesuffix(".") + "." == COMMANDS[name].summary


def test_a_misspelt_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plnas"]) == 2
    assert "Did you mean 'plans'" in capsys.readouterr().err


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """An app with one command, `fail`, which raises what the list holds."""
    app, errors = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None), []

    @app.callback()
    def _frame() -> None:
        """Makes `fail` a command of its own."""

    @app.command()
    def fail() -> None:
        for error in errors:
            raise error

    monkeypatch.setattr(cli, "app", app)
    return errors


def test_a_command_that_measures_says_that_it_resumes(
    failing: list[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(KeyboardInterrupt())
    monkeypatch.setattr(cli, "MEASURING", (["fail"],))
    assert run(["fail"]) == 130
    assert capsys.readouterr().err == "stopped; measurements are stored, and the same command resumes from them\n"


def test_ctrl_c_promises_no_measurements_where_a_running_job_is_observed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(**_: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(cli, "app", stopped)
    assert run(["plan", "--from-running", "--rate", "10"]) == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SluiceError("the testbed is gone [mst]"), 1, "failed: the testbed is gone [mst]"),
        (OSError(28, "No space left on device"), 1, "failed: [Errno 28] No space left on device"),
        (InvalidInput("rate must be above 0"), 2, "error: rate must be above 0"),
        (Infeasible("3 slots, 5 tasks"), 3, "no feasible answer: 3 slots, 5 tasks"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (typer.Exit(4), 4, ""),
    ],
)
def test_each_kind_of_error_has_its_exit_code_and_one_message(
    failing: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    message: str,
) -> None:
    failing.append(error)
    assert run(["fail"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert "Traceback" not in captured.err


def test_success_is_exit_0(failing: list[BaseException]) -> None:
    assert run(["fail"]) == 0


def test_a_defect_of_ours_is_not_hidden(failing: list[BaseException]) -> None:
    failing.append(ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        run(["fail"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["plans", "nosuch"],
        ["plans", "show"],
        ["plans", "show", "--nosuch"],
        ["plans", "show", "q5", "too-many"],
        ["plans", "export", "q5", "--format", "nosuch"],
        ["plans"],
        [],
    ],
)
def test_unusable_arguments_are_exit_2_with_a_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "sluice" in captured.err and "Traceback" not in captured.err


def test_help_is_exit_0_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    captured = capsys.readouterr()
    assert "plans" in captured.out and captured.err == ""


def test_the_installed_command_prints_one_json_document(tmp_path: Path) -> None:
    done = sluice("plans", "list", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"plans": []}


def test_the_installed_command_explains_itself_without_a_traceback(tmp_path: Path) -> None:
    done = sluice("plans", "show", "q5", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is no plan of the job 'q5'")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_stops_early_causes_no_traceback(tmp_path: Path) -> None:
    command = subprocess.Popen([SLUICE, "plans", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert command.stdout is not None and command.stderr is not None
    command.stdout.close()
    messages = command.stderr.read()
    command.stderr.close()
    assert command.wait(timeout=120) == 1
    assert "Traceback" not in messages
