"""Programs for the Java kit: SQL scripts, and dataflows of operators with stated costs from jobs of the catalogue."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from flink_client.rest.jars import JarProgram
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.job import Job, Keys, Operator, records_in_per_source_record
from testbeds.flink.local.kit import ENTRY_CLASS

NEXMARK: Final = Path(__file__).parent.parent / "sql" / "nexmark.sql"
UNCHAINED: Final = {"pipeline.operator-chaining.enabled": "false"}


class Payment(StrEnum):
    """How operators spend the stated CPU cost of a record."""

    BUSY = "busy"
    """They burn that much CPU time."""
    PACED = "paced"
    """Each task is rate-limited, as the operators of DS2 section 5.2."""
    SHARED = "shared"
    """As PACED, and the tasks of a TaskManager share the budget of its cores."""


def whole_script(query: str, control: str, seed: int) -> str:
    """A SQL script with its tables; one that creates none is a query over Nexmark's.

    Its sources must be of the connector `sluice`, with `'control' = '{control}'`; `{seed}` is filled in, too.
    """
    own = re.search(r"^\s*CREATE\s+(TEMPORARY\s+)?TABLE\s", query, re.IGNORECASE | re.MULTILINE)
    return _filled(query if own else NEXMARK.read_text(encoding="utf-8") + query, control, seed)


def _filled(script: str, control: str, seed: int) -> str:
    return script.replace("{control}", control).replace("{seed}", str(seed))


def dataflow_program(
    job: Job,
    parallelism: Mapping[str, int],
    control: str,
    settings: Mapping[str, str],
    *,
    payment: Payment,
    seed: int = 1,
    slot_per_task: bool = True,
) -> JarProgram:
    """Run a job of the catalogue as operators with its stated costs: CPU, bytes, state, keys, records out.

    Windows do not fire in bursts here: an operator with a window pays and emits record by record.

    Raises:
        InvalidInput: an edge takes only a share of its upstream's records, hash-partitioned input has no keys, or an operator
            waits outside the job.
    """
    waits = [o for o in job.operators if o.cost.external_wait_s > 0]
    if waits:
        raise InvalidInput(
            f"on Flink an operator with stated costs takes CPU time alone, but {waits[0].name!r} of job {job.name!r} has "
            f"'external_wait_s' {waits[0].cost.external_wait_s:g}; remove it, or run the program itself"
        )
    shares = [e for e in job.edges if e.share != 1.0]
    if shares:
        raise InvalidInput(
            f"on Flink an edge must take all records of its upstream, but {shares[0].upstream!r} -> "
            f"{shares[0].downstream!r} of job {job.name!r} takes {shares[0].share:g}"
        )
    records_in = records_in_per_source_record(job)
    dataflow = {
        "operators": [_operator(job.operator(name), parallelism[name], records_in[name], seed) for name in job.order],
        "edges": [{"from": e.upstream, "to": e.downstream, "partitioning": e.partitioning.value} for e in job.edges],
        "cost": payment.value,
    }
    for edge in job.edges:
        if edge.partitioning is Partitioning.HASH and job.operator(edge.downstream).keys is None:
            raise InvalidInput(
                f"operator {edge.downstream!r} of job {job.name!r} reads by hash and needs 'keys' to run on Flink"
            )
    document = {"name": job.name, "dataflow": dataflow, "control": control, "slot_per_task": slot_per_task}
    key_groups = {} if job.key_groups is None else {"pipeline.max-parallelism": str(job.key_groups)}
    return program_of(document, UNCHAINED | key_groups | dict(settings))


def _operator(operator: Operator, tasks: int, records_in: float, seed: int) -> dict[str, Any]:
    return {
        "name": operator.name,
        "parallelism": tasks,
        "cpu_s": operator.cost.cpu_s,
        "selectivity": operator.selectivity,
        "bytes_out": round(operator.cost.bytes_out),
        "state_read_bytes": round(operator.cost.state_read_bytes),
        "state_write_bytes": round(operator.cost.state_write_bytes),
        "keys": None if operator.keys is None else _keys(operator.keys, records_in, seed),
    }


def _keys(keys: Keys, records_in: float, seed: int) -> dict[str, float]:
    """Periods in events of the source; a key that is hot for seconds stays hot, since records have no time."""
    period = keys.hot_period_records
    return {
        "seed": seed,
        "distinct": keys.distinct,
        "hot_share": keys.hot_share,
        "hot_period_events": 2.0**53 if period is None else period / records_in,
        "lifetime_events": 0.0 if keys.lifetime_records is None else keys.lifetime_records / records_in,
    }


def program_of(document: Mapping[str, Any], settings: Mapping[str, str]) -> JarProgram:
    """The arguments with which the kit runs a document, see `java/sluice/Run.java`."""
    return JarProgram(ENTRY_CLASS, (json.dumps(document),), settings)
