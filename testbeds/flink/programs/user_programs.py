"""A user's SQL script or jar as it is submitted, with sources whose rate can be set."""

import hashlib
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from flink_client.answers import Vertex
from flink_client.job_graph import TABLE, read_job
from flink_client.rest import JarProgram
from models.errors import InvalidInput
from models.job import Job
from testbeds.flink.cluster import FlinkCluster
from testbeds.flink.feeding.in_step import in_proportion
from testbeds.flink.feeding.recordings import Recording, as_text, records_in
from testbeds.flink.programs.stated_costs import UNCHAINED, program_of, whole_script
from testbeds.local.cache import cache_folder, made_once

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


@dataclass(frozen=True)
class UserJar:
    """A jar whose sources are made by `sluice.Rated`."""

    path: Path
    entry_class: str
    arguments: tuple[str, ...] = ()


UserProgram = SqlScript | UserJar


def submitted(user: UserProgram, name: str, cluster: FlinkCluster, control: str, seed: int) -> tuple[str, JarProgram]:
    """The id of the jar on the cluster, and its arguments, with a slot for each task.

    Args:
        control: HOST:PORT that sets the rates.

    Raises:
        InvalidInput: a file cannot be read.
    """
    document: dict[str, Any] = {"name": name, "slot_per_task": True, "only_rated": True}
    if isinstance(user, UserJar):
        document |= {"entry_class": user.entry_class, "arguments": list(user.arguments)}
        settings = UNCHAINED | {CONTROL_KEY: control}
        return cluster.uploaded(with_kit(user.path, cluster.kit)), program_of(document, settings)
    document["sql"] = whole_script(user.text, control, seed)
    document["discard_sinks"] = not user.keep_sinks
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
            f"table it reads with a recorded file, use the connector 'sluice', or, in a jar, make it with sluice.Rated"
        )
    return found[1]


def _options(recording: Recording, cluster: FlinkCluster, control: str) -> dict[str, str]:
    text = as_text(recording)
    options = {"connector": "sluice", "control": control, "path": cluster.data_path(text.path), "format": text.format}
    options["header-lines"] = str(text.header_lines)
    return options if text.time_column is None else options | {"time-column": text.time_column}


def with_kit(jar: Path, kit: Path) -> Path:
    """The jar with the kit's classes in it, kept in the cache.

    Raises:
        InvalidInput: it is no jar.
    """
    if not zipfile.is_zipfile(jar):
        raise InvalidInput(f"{jar} must be a jar, but is not there or not one; check the path")
    digest = hashlib.sha256(jar.read_bytes() + kit.read_bytes()).hexdigest()
    return made_once(cache_folder() / f"flink-jar-{digest[:16]}", partial(_merge, jar, kit)) / jar.name


def _merge(jar: Path, kit: Path, made: Path) -> None:
    """For files in both, the kit's is taken; services are merged. Signatures are dropped."""
    content: dict[str, bytes] = {}
    for origin in (jar, kit):
        with zipfile.ZipFile(origin) as archive:
            for name in archive.namelist():
                if name.endswith("/") or (name.startswith("META-INF/") and name.upper().endswith(_SIGNATURES)):
                    continue
                both = name in content and name.startswith(_SERVICES)
                content[name] = (content[name] + b"\n" if both else b"") + archive.read(name)
    with zipfile.ZipFile(made / jar.name, "w", zipfile.ZIP_DEFLATED) as merged:
        for name, data in content.items():
            merged.writestr(name, data)
