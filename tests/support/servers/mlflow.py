"""A server of MLflow that a test has started."""

import subprocess
import time
import urllib.request


def wait_until_up(url: str, process: "subprocess.Popen[str] | subprocess.Popen[bytes]", seconds: float = 180.0) -> None:
    """Until a server at `url` answers; it must not end meanwhile."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{url} did not answer within {seconds:g} s")
