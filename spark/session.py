"""The Spark session of stages, jobs, tests and benchmarks: quiet, in UTC, on loopback where possible.

Features are DataFrame expressions: executors run no Python, so a stand-alone cluster needs only Spark. A job that runs
Python on executors, as threshold tables do, sends them the code (`spark.code`).
"""

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Final
from urllib.parse import urlsplit

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from models.errors import SluiceError
from spark.java import find_java

MASTER_VARIABLE: Final = "SLUICE_SPARK_MASTER"
DRIVER_MEMORY_VARIABLE: Final = "SLUICE_SPARK_DRIVER_MEMORY"
DEFAULT_MASTER: Final = "local[*]"
DEFAULT_DRIVER_MEMORY: Final = "1g"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print each exception that names an expression, with its stack trace, before it can be caught."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has started the JVM and passed the master."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Sums are taken before the shuffle, so little is shuffled; adaptive execution merges empty partitions.
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Only the C1 compiler: the first extraction takes half the CPU time, later ones no more. Local jobs run for seconds,
    # and spend the rest on decoding Parquet; executors of a cluster keep both compilers.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def session(master: str | None = None, driver_memory: str | None = None) -> SparkSession:
    """The session of this process, started if needed, which takes some seconds; one whose JVM has died is replaced.

    Args:
        master: Spark master URL, for example `local[2]` or `spark://host:7077`; without one, the environment variable
            SLUICE_SPARK_MASTER, else the master of spark-submit, else `local[*]`.
        driver_memory: heap of the driver's JVM, for example `2g`; without one, the environment variable
            SLUICE_SPARK_DRIVER_MEMORY, else 1g. It cannot change once the JVM runs.

    Raises:
        SluiceError: there is no Java 17 or newer, Spark did not start, or this process has a session on another master.
    """
    wanted = master or os.environ.get(MASTER_VARIABLE)
    _replace_dead_jvm()
    running = SparkContext._active_spark_context
    if running is not None:
        if wanted is not None and running.master != wanted:
            raise SluiceError(
                f"this process already has a Spark session on {running.master}, so it cannot have one on {wanted}; "
                f"stop that one first, or start a new process"
            )
        return SparkSession.builder.getOrCreate()
    # In the main thread Spark would install its own handler of interrupts, which asks the JVM in the middle of a request.
    with _interrupted_later(), ThreadPoolExecutor(1) as starting:
        return starting.submit(_start, _configuration(wanted, driver_memory)).result()


def _replace_dead_jvm() -> None:
    """Drop a context that has stopped, with its JVM, as Spark stops them when the memory is exhausted."""
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or context is None or _is_alive(context):
        return
    process.kill()
    process.wait()
    context._jsc = None  # `stop` would call it, and fail before it drops the rest
    context.stop()
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None


def _is_alive(context: SparkContext) -> bool:
    try:
        return not context._jsc.sc().isStopped()
    except (Py4JError, OSError):
        return False


def _configuration(master: str | None, driver_memory: str | None) -> SparkConf:
    submitted = _SUBMITTED in os.environ
    conf = SparkConf(loadDefaults=submitted)
    if master is not None or not submitted:
        conf.setMaster(master or DEFAULT_MASTER)
    conf.setIfMissing("spark.app.name", "sluice")
    memory = driver_memory or os.environ.get(DRIVER_MEMORY_VARIABLE)
    conf.setIfMissing("spark.driver.memory", memory or DEFAULT_DRIVER_MEMORY)
    for name, value in _SETTINGS.items():
        conf.setIfMissing(name, value)
    if _is_local(conf.get("spark.master") or DEFAULT_MASTER):
        conf.setIfMissing("spark.driver.bindAddress", _LOOPBACK[0])
        conf.setIfMissing("spark.driver.host", _LOOPBACK[0])
    return conf


def _is_local(master: str) -> bool:
    """Whether executors run on this machine, so that the driver need not listen on any other interface."""
    return master.startswith("local") or urlsplit(master).hostname in _LOOPBACK


def _start(conf: SparkConf) -> SparkSession:
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel("CRITICAL")
    logging.getLogger().addFilter(_is_no_interrupt)
    # The JVM's own warnings go to an unnamed file: they do not help a user, and failures are raised as exceptions.
    with tempfile.TemporaryFile() as log, _environment(conf):
        try:
            gateway: JavaGateway | None = None
            if _SUBMITTED not in os.environ and SparkContext._gateway is None:
                gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except (PySparkException, OSError) as error:
            raise SluiceError(
                f"Spark did not start with master {conf.get('spark.master')}: {error}; it said: {_tail(log)}"
            ) from None


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs an interrupt with its stack trace before it passes it on."""
    return record.msg != "KeyboardInterrupt while sending command."


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Let an interrupt wait for the end of the block: a JVM whose start is interrupted stays for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _environment(conf: SparkConf) -> Iterator[None]:
    """The environment of the JVM and Python workers: this interpreter, the Java found, the loopback address."""
    wanted = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if _SUBMITTED not in os.environ:
        wanted["JAVA_HOME"] = str(find_java())
    if _is_local(conf.get("spark.master") or DEFAULT_MASTER):
        wanted["SPARK_LOCAL_IP"] = _LOOPBACK[0]
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _tail(log: IO[bytes], characters: int = 600) -> str:
    log.seek(0)
    text = " ".join(log.read().decode(errors="replace").split())
    return text[-characters:] or "nothing"
