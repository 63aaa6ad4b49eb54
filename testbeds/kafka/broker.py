"""A Kafka broker as a process of this machine, which ends with the process that started it."""

import os
import shutil
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from models.closing import Closing
from models.errors import SluiceError
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.distribution import class_path, jdk
from testbeds.local.folder import own_folder
from testbeds.local.java_process import end, last_words, start_java
from testbeds.local.machine import LOOPBACK, check_memory, free_port

START_S: Final = 300.0
HEAP_MB: Final = 512
_MEMORY_MB: Final = 2.0 * HEAP_MB
_PAUSE_S: Final = 0.1
_FORMAT: Final = "kafka.tools.StorageTool"
_BROKER: Final = "kafka.Kafka"
_LOGGING: Final = """\
appender.file.type=File
appender.file.name=file
appender.file.fileName={log}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %m (%c)%n
rootLogger.level=WARN
rootLogger.appenderRef.file.ref=file
"""


class LocalBroker(Closing):
    """A broker that is its own controller (KRaft), on 127.0.0.1. It ends with this process, even if that is killed.

        with LocalBroker() as broker:
            broker.start()
            broker.connection

    Its files are in a folder of the user's cache, which is removed with it; the next broker removes folders left by killed
    processes.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """
        Args:
            settings: of the broker, besides those set here.

        Raises:
            SluiceError: there is no Java or no Maven, or Kafka could not be fetched.
        """
        self._jdk, self._class_path = jdk(), class_path()
        self._folder, self._owner = own_folder("kafka-brokers")
        self._log = self._folder / "broker.log"
        self._settings = dict(settings or {})
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._folder

    @property
    def connection(self) -> KafkaConnection:
        """
        Raises:
            SluiceError: it was not started.
        """
        if self._port is None:
            raise SluiceError("the local Kafka broker was not started; call `start` first")
        return KafkaConnection(f"{LOOPBACK}:{self._port}")

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs; one that was stopped or killed gets its old address, and has its records.

        Raises:
            Infeasible: there is not enough memory for it.
            SluiceError: it ended, or was not ready in time; the message quotes its log.
        """
        if self.runs:
            return
        check_memory(_MEMORY_MB, "the Kafka broker", "stop what else runs on it")
        new = self._port is None
        if new:
            self._configure()
        try:
            if new:
                self._format()
            self._process = self._java("broker", _BROKER, str(self._folder / "broker.properties"))
            self._wait_until_ready()
        except BaseException:
            self.stop()
            self._port = None if new else self._port
            raise

    def check(self) -> None:
        """Raise if it has ended.

        Raises:
            SluiceError: it names the end of its log.
        """
        if self._process is not None and (code := self._process.poll()) is not None:
            raise SluiceError(f"the Kafka broker ended with code {code}: {last_words(self._log)}")

    def kill(self) -> None:
        """Kill it, to test faults."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End it; may be called twice."""
        if self._process is not None:
            end(self._process)
        self._process = None

    def close(self) -> None:
        """Stop, and remove its files."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()

    def _configure(self) -> None:
        self._port, controller = free_port(), free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{self._port},CONTROLLER://{LOOPBACK}:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._folder / "records"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # What was deleted or is beyond a topic's limit should leave the disk soon.
            "log.initial.task.delay.ms": "2000",
            "log.retention.check.interval.ms": "2000",
            "log.segment.delete.delay.ms": "1000",
            **self._settings,
        }
        lines = (f"{key}={value}\n" for key, value in settings.items())
        (self._folder / "broker.properties").write_text("".join(lines), encoding="utf-8")
        (self._folder / "log4j2.properties").write_text(_LOGGING.format(log=self._log), encoding="utf-8")

    def _format(self) -> None:
        """Write the cluster's id to the folder of records, without which a broker does not start."""
        # It may begin with a hyphen, which as a word of its own would be taken for an option.
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        settings = str(self._folder / "broker.properties")
        formatting = self._java("format", _FORMAT, "format", f"--cluster-id={cluster}", "--config", settings)
        if code := formatting.wait():
            said = last_words(self._folder / "format.log")
            raise SluiceError(f"the folder of the Kafka broker could not be formatted (code {code}): {said}")

    def _java(self, name: str, *program: str) -> subprocess.Popen[bytes]:
        flags = [f"-Xmx{HEAP_MB}m", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]
        flags += [f"-Dlog4j2.configurationFile={(self._folder / 'log4j2.properties').as_uri()}"]
        return start_java(
            self._jdk, [*flags, "-cp", self._class_path], program, self._folder / f"{name}.out", os.environ
        )

    def _wait_until_ready(self) -> None:
        admin, until = self.connection.admin(), time.monotonic() + START_S
        while True:
            self.check()
            try:
                with self.connection.answers():
                    if admin.list_topics(timeout=1.0).brokers:
                        return
            except SluiceError:
                if time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_S)
