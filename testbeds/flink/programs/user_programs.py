"""A user's SQL script or jar as it is submitted, with sources whose rate can be set."""

import hashlib
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from flink_client.jobs.job_graph import TABLE, read_job
from flink_client.rest.answers import Vertex
from flink_client.rest.jars import JarProgram
from models.errors import InvalidInput
from models.job import Job
from testbeds.flink.cluster import FlinkCluster
from testbeds.flink.feeding.in_step import in_proportion
from testbeds.flink.feeding.recordings import Recording, as_text, records_in
from testbeds.flink.programs.fed_sources import fed_by_kafka
from testbeds.flink.programs.stated_costs import UNCHAINED, program_of, whole_script
from testbeds.kafka.distribution import connector_jars
from testbeds.kafka.supply import KafkaFeed
from testbeds.local.cache import cache_folder, made_once

BROKERS: Final = "{kafka}"
CONTROL_KEY: Final = "sluice.control"
"""Setting that gives `sluice.Rated` in a user's jar the address that sets the rate."""
_RATED: Final = re.compile(r"sluice\.Rated\((.+?)\)")
_NOBODY: Final = "127.0.0.1:1"
_SIGNATURES: Final = (".SF", ".RSA", ".DSA", ".EC")
_SERVICES: Final = "META-INF/services/"


@dataclass(frozen=True)
class SqlScript:
    """SQL whose sources use the connector `sluice`, or are tables replaced by recorded files."""

    text: str
    recordings: Mapping[str, Recording] = field(default_factory=lambda: MappingProxyType({}))
    """By the name of the table."""
    keep_sinks: bool = True
    """Whether sink tables are kept; otherwise rows written to them are discarded."""
    kafka: KafkaFeed | None = None
    """Topics that its Kafka tables read; None: its sources have rates that can be set."""


@dataclass(frozen=True)
class UserJar:
    """A jar whose sources are made by `sluice.Rated`, or read Kafka."""

    path: Path
    entry_class: str
    arguments: tuple[str, ...] = ()
    kafka: KafkaFeed | None = None
    """Topics that it reads; BROKERS in an argument stands for the address of the brokers. None: its sources are rated."""


UserProgram = SqlScript | UserJar


def submitted(user: UserProgram, name: str, cluster: FlinkCluster, control: str, seed: int) -> tuple[str, JarProgram]:
    """The id of the jar on the cluster, and its arguments, with a slot for each task.

    Args:
        control: HOST:PORT that sets the rates, or of the Kafka brokers.

    Raises:
        InvalidInput: a file cannot be read.
    """
    document: dict[str, Any] = {"name": name, "slot_per_task": True, "only_rated": user.kafka is None}
    if isinstance(user, UserJar):
        arguments = [one.replace(BROKERS, control) for one in user.arguments] if user.kafka else list(user.arguments)
        document |= {"entry_class": user.entry_class, "arguments": arguments}
        settings = UNCHAINED | ({} if user.kafka else {CONTROL_KEY: control})
        return cluster.uploaded(with_kit([user.path], cluster.kit)), program_of(document, settings)
    document["discard_sinks"] = not user.keep_sinks
    if user.kafka is not None:
        document |= {"sql": user.text, "kafka": control}
        connector = sorted(connector_jars(cluster.rest.flink_version()).glob("*.jar"))
        return cluster.uploaded(with_kit(connector, cluster.kit)), program_of(document, UNCHAINED)
    document["sql"] = whole_script(user.text, control, seed)
    document["stand_ins"] = {
        table: _options(recording, cluster, control) for table, recording in user.recordings.items()
    }
    return cluster.uploaded(cluster.kit), program_of(document, UNCHAINED)


def planned_job(user: UserProgram, name: str, cluster: FlinkCluster) -> Job:
    """The job that Flink makes of a program, which is not run; see `graph.read_job`.

    Raises:
        InvalidInput: Flink refuses it, or a source has no rate that can be set.
    """
    vertices, edges = cluster.rest.plan(*submitted(user, name, cluster, _NOBODY, seed=0))
    if user.kafka is not None:
        return fed_by_kafka(read_job(name, vertices, edges), user.kafka.topics)
    has_input = {edge.downstream for edge in edges}
    for vertex in vertices:
        if vertex.id not in has_input:
            source_name(vertex)
    job = read_job(name, vertices, edges, (_RATED,))
    tables = {o.name: TABLE.search(o.description) for o in job.sources}
    recorded = recorded_tables(user)
    return in_proportion(
        job, {source: recorded[table[1]] for source, table in tables.items() if table and table[1] in recorded}
    )


def recorded_tables(user: UserProgram | None) -> dict[str, int]:
    """Records in the recording of each table that is replaced by one.

    Raises:
        InvalidInput: a file cannot be read, or holds none.
    """
    recordings = user.recordings if isinstance(user, SqlScript) else {}
    return {table: records_in(recording) for table, recording in recordings.items()}


def source_name(source: Vertex) -> str:
    """The name under which the rate of a source is set: its table in SQL, in a jar the name given to `sluice.Rated`.

    Raises:
        InvalidInput: it is neither, so that its rate cannot be set.
    """
    found = TABLE.search(source.name) or _RATED.search(source.name)
    if found is None:
        raise InvalidInput(
            f"the rate of every source must be set by Sluice, but that of {source.name[:120]!r} cannot be: name the "
            f"table it reads with a recorded file, use the connector 'sluice', or, in a jar, make it with sluice.Rated; "
            f"where it reads Kafka, name its topics in the program file and add --feed kafka"
        )
    return found[1]


def _options(recording: Recording, cluster: FlinkCluster, control: str) -> dict[str, str]:
    text = as_text(recording)
    options = {"connector": "sluice", "control": control, "path": cluster.data_path(text.path), "format": text.format}
    options["header-lines"] = str(text.header_lines)
    return options if text.time_column is None else options | {"time-column": text.time_column}


def with_kit(jars: Sequence[Path], kit: Path) -> Path:
    """One jar with the jars' and the kit's classes, by the name of the first; kept in the cache.

    Raises:
        InvalidInput: one is no jar.
    """
    for jar in jars:
        if not zipfile.is_zipfile(jar):
            raise InvalidInput(f"{jar} must be a jar, but is not there or not one; check the path")
    digest = hashlib.sha256()
    for one in (*jars, kit):
        digest.update(one.read_bytes())
    made = made_once(cache_folder() / f"flink-jar-{digest.hexdigest()[:16]}", partial(_merge, (*jars, kit)))
    return made / jars[0].name


def _merge(origins: Sequence[Path], made: Path) -> None:
    """For files in several, the last's is taken; services are merged. Signatures are dropped."""
    content: dict[str, bytes] = {}
    for origin in origins:
        with zipfile.ZipFile(origin) as archive:
            for name in archive.namelist():
                if name.endswith("/") or (name.startswith("META-INF/") and name.upper().endswith(_SIGNATURES)):
                    continue
                both = name in content and name.startswith(_SERVICES)
                content[name] = (content[name] + b"\n" if both else b"") + archive.read(name)
    with zipfile.ZipFile(made / origins[0].name, "w", zipfile.ZIP_DEFLATED) as merged:
        for name, data in content.items():
            merged.writestr(name, data)
