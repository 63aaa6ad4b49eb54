"""A value that does not serve is refused with what must hold and what came."""

import pytest

from pipelines.cli import EXIT_USAGE, run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "nexmark-q1", "--rate", "-5"], "'--rate': it must be 0 or more, but got '-5'"),
        (["plan", "nexmark-q1", "--rate", "0"], "'--rate': it must be a number above 0, but got 0.0"),
        (["plan", "nexmark-q1", "--rate", "1e13"], "'--rate': it must be 1,000,000,000,000 or less, but got '1e13'"),
        (["plan", "nexmark-q1", "--rate", "fast"], "'--rate': it must be a number, but got 'fast'"),
        (["plan", "nexmark-q1", "--rate", "5", "--seed", "1.5"], "'--seed': it must be a whole number, but got '1.5'"),
        (["plan", "nexmark-q1", "--rate", "5", "--testbed", "storm"], "'storm' is not one of 'simulator', 'flink'"),
        (["evaluate", "--seeds", "0"], "'--seeds': it must be 1 or more, but got '0'"),
        (["autopilot", "metrics", "--port", "-1"], "'--port': it must be 0 or more, but got '-1'"),
    ],
)
def test_a_refused_value_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == EXIT_USAGE
    assert said in capsys.readouterr().err
