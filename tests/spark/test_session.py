"""The session: silent, on loopback, one per process, with clear errors."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from models.errors import SluiceError
from spark.session import session

pytestmark = pytest.mark.slow


def test_settings(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_second_call_gives_the_same_session_and_another_master_is_refused(spark: SparkSession) -> None:
    assert session() is spark or session().sparkContext is spark.sparkContext
    with pytest.raises(SluiceError, match="already has a Spark session"):
        session("local[1]" if spark.sparkContext.master != "local[1]" else "local[3]")


def run_alone(code: str, root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)


def test_nothing_is_printed_and_settings_come_from_the_environment(root: Path) -> None:
    code = (
        "from spark.session import session\n"
        "s = session()\n"
        "s.range(100).groupBy().count().collect()\n"
        "print(s.sparkContext.master, s.sparkContext.getConf().get('spark.driver.memory'))\n"
    )
    done = run_alone(code, root, SLUICE_SPARK_MASTER="local[1]", SLUICE_SPARK_DRIVER_MEMORY="600m")
    assert (done.returncode, done.stdout, done.stderr) == (0, "local[1] 600m\n", "")


def test_a_failed_start_says_what_spark_said(root: Path) -> None:
    code = (
        "from models.errors import SluiceError\nfrom spark.session import session\n"
        "try:\n    session('local[1]', driver_memory='12x')\nexcept SluiceError as error:\n    print(error)\n"
    )
    done = run_alone(code, root)
    assert done.stdout.startswith("Spark did not start with master local[1]") and "12x" in done.stdout


def test_a_session_whose_jvm_has_died_is_replaced(root: Path) -> None:
    code = (
        "from pyspark import SparkContext\nfrom spark.session import session\n"
        "print(session('local[1]').range(5).count())\n"
        "SparkContext._gateway.proc.kill()\n"
        "print(session('local[1]').range(7).toArrow().num_rows)\n"
        "print(session() is session())\n"
    )
    done = run_alone(code, root)
    assert (done.returncode, done.stdout) == (0, "5\n7\nTrue\n"), done.stderr


@pytest.mark.parametrize("during", ["launch_gateway", "SparkSession"])
def test_an_interrupted_start_is_finished_first_so_that_its_jvm_ends_too(root: Path, during: str) -> None:
    """A JVM whose start is cut off waits for ever for a connection."""
    code = (
        "import os, signal, threading\n"
        "from pyspark import SparkContext\n"
        "from spark import session\n"
        f"real = session.{during}\n"
        "def interrupted(*given, **named):\n"
        "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    return real(*given, **named)\n"
        f"session.{during} = interrupted\n"
        "try:\n"
        "    session.session('local[1]')\n"
        "except KeyboardInterrupt:\n"
        "    print(SparkContext._gateway.proc.pid, signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    done = run_alone(code, root)
    pid, default_again = done.stdout.split()
    assert (done.returncode, done.stderr, default_again) == (0, "", "True")
    deadline = time.monotonic() + 30
    while is_java(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_java(pid)


def is_java(pid: str) -> bool:
    """Whether the process runs still; one that has ended and was not waited for has no command line."""
    file = Path(f"/proc/{pid}/cmdline")
    return file.exists() and b"java" in file.read_bytes()
