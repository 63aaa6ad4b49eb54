"""The Java kit compiles without a warning, and its own tests (plain Java with assertions) pass."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from testbeds.flink.local.kit import kit_jar
from testbeds.local.javac import compile_java

SOURCES = Path(__file__).parent / "java"
TESTS = sorted(path.relative_to(SOURCES) for path in SOURCES.rglob("*Test.java"))


@pytest.fixture(scope="module")
def classes(flink: Path, jdk: Path, kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    compile_java([SOURCES / test for test in TESTS], folder, f"{kit}:{flink}/lib/*", jdk)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.stem)
def test_java(test: Path, classes: Path, flink: Path, jdk: Path, kit: Path) -> None:
    name = ".".join(test.with_suffix("").parts)
    command = [str(jdk / "bin/java"), "-ea", "-Xmx256m", "-XX:TieredStopAtLevel=1"]
    done = subprocess.run(
        [*command, "-cp", f"{classes}:{kit}:{flink}/lib/*", name], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_jar_holds_the_connector_the_runner_and_the_hook_and_is_made_once(
    kit: Path, flink: Path, jdk: Path
) -> None:
    names = set(zipfile.ZipFile(kit).namelist())
    assert {"sluice/Run.class", "META-INF/services/org.apache.flink.table.factories.Factory"} <= names
    assert "org/apache/flink/runtime/scheduler/adaptive/allocator/SlotSharingSlotAllocator.class" in names
    made = kit.stat().st_mtime_ns
    assert kit_jar(flink, jdk) == kit and kit.stat().st_mtime_ns == made
