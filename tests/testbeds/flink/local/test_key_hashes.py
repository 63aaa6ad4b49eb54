"""The hash codes and key groups that the models are held to are those of the Flink that is measured on."""

import subprocess
from pathlib import Path

import pytest

from testbeds.local.javac import compile_java

SOURCE = Path(__file__).parent / "java" / "sluice" / "KeyHashes.java"


@pytest.mark.slow
def test_flinks_own_classes_have_the_hashes_of_the_table(flink: Path, jdk: Path, tmp_path: Path, root: Path) -> None:
    compile_java([SOURCE], tmp_path, f"{flink}/lib/*", jdk)
    command = [str(jdk / "bin/java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{tmp_path}:{flink}/lib/*"]
    done = subprocess.run([*command, "sluice.KeyHashes"], capture_output=True, text=True, timeout=120)
    assert done.stdout == (root / "tests/data/flink/key-hashes.tsv").read_text(encoding="utf-8"), done.stderr
