"""`python -m pipelines.detached REQUEST_URI STAGE NUMBER`: run a stage as one attempt, and record how it ended."""

import signal
import sys
import traceback

from models.errors import SluiceError
from pipelines.detached.attempts import Attempts, Outcome
from pipelines.detached.attending import Attendant
from pipelines.progress import LineProgress
from testbeds.local.termination import closing_on_sigterm


def main(request_uri: str, stage: str, number: int) -> int:
    """Run the stage; returns the exit code."""
    attempt = Attempts(request_uri, stage).of(number)
    with closing_on_sigterm():
        attendant = Attendant(attempt, attempt.record.limit_s)
        try:
            attendant.look()  # before imports that take seconds
            attendant.start()
            outcome = _run(request_uri, stage, attendant)
        except SystemExit:
            outcome = attendant.stopping or Outcome(kind="stopped", text="it was ended by a signal")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what is left takes no time, and must be done
        attendant.close()
        return 0 if attempt.end(outcome).kind == "done" else 1


def _run(request_uri: str, stage: str, attendant: Attendant) -> Outcome:
    try:
        from pipelines.stages import run_stage_at

        return Outcome(kind="done", text=run_stage_at(stage, request_uri, LineProgress(attendant.say)))
    except SluiceError as error:
        return Outcome(kind="refused", text=str(error))
    except Exception as error:
        for line in traceback.format_exc().splitlines():
            attendant.say(line)
        return Outcome(kind="failed", text=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
