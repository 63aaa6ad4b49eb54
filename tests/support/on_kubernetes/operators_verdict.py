"""What a change of a FlinkDeployment is, by the operator's own classes."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from testbeds.local.jdk import find_jdk
from testbeds.local.maven import jars

HERE = Path(__file__).parents[2] / "flink_client" / "kubernetes" / "operator"
Document = dict[str, Any]


@cache
def operator_jars() -> Path:
    return jars(HERE / "operator.pom.xml", "the operator's verdict")


def verdicts(*changes: tuple[Document, Document]) -> list[tuple[str, str]]:
    """Type of each change (SCALE, UPGRADE, IGNORE), and what the operator keeps of the spec once it acted on it."""
    java = find_jdk(needed_by="the operator's verdict") / "bin" / "java"
    command = [str(java), "-cp", f"{operator_jars()}/*", str(HERE / "Verdict.java")]
    done = subprocess.run(command, input=json.dumps(changes), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]
