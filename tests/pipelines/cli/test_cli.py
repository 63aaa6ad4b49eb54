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
from pipelines.cli.commands import MODULES, register

register([])  # the real commands, before a test puts another app in place
SLUICE = Path(sys.executable).with_name("sluice")


def sluice(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SLUICE, *arguments], capture_output=True, text=True, cwd=folder, timeout=120)


def test_every_command_is_found_in_its_module() -> None:
    group = typer.main.get_command(cli.app)
    registered = {name: command.callback.__module__ for name, command in group.commands.items() if command.callback}
    registered |= {name: f"pipelines.cli.{name}" for name in group.commands if name not in registered}
    assert registered == {
        command: f"pipelines.cli.{module}" for module, commands in MODULES.items() for command in commands
    }


def test_a_command_does_not_wait_for_the_imports_of_others(tmp_path: Path) -> None:
    loaded = "import sys; from pipelines.cli import run; run(['jobs']); print({'numba', 'scipy'} & sys.modules.keys())"
    listed = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert listed.stdout.endswith("set()\n")


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


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SluiceError("the testbed is gone [mst]"), 1, "failed: the testbed is gone [mst]"),
        (OSError(28, "No space left on device"), 1, "failed: [Errno 28] No space left on device"),
        (InvalidInput("rate must be above 0"), 2, "error: rate must be above 0"),
        (Infeasible("3 slots, 5 tasks"), 3, "no feasible answer: 3 slots, 5 tasks"),
        (KeyboardInterrupt(), 130, "stopped; what was measured is kept"),
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
