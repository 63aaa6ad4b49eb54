"""The Java kit compiles without a warning against every release, and its own tests (JUnit, with Maven) pass."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from models.errors import SluiceError
from testbeds.flink.local.distribution import RELEASES, Release, flink_home
from testbeds.flink.local.kit import PROJECT, kit_jar
from testbeds.local.maven import find_maven

ALLOCATOR = "org/apache/flink/runtime/scheduler/adaptive/allocator"


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_kits_own_tests_pass(release: Release, jdk: Path, tmp_path: Path) -> None:
    try:
        maven = find_maven("the kit's own tests")
    except SluiceError as missing:
        pytest.skip(str(missing))
    command = [maven, "--batch-mode", "--quiet", "--file", str(PROJECT / "pom.xml"), f"-Dsluice.build={tmp_path}"]
    command += [f"-Dflink.home={flink_home(release=release)}"]
    command += [] if release.line == "1.20" else [f"-Pflink-{release.line}"]
    environment = os.environ | {"JAVA_HOME": str(jdk)}
    done = subprocess.run([*command, "test"], capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    reports = (tmp_path / "surefire-reports").glob("*.txt")
    assert {path.stem.rpartition(".")[2] for path in reports} == {
        path.stem for path in (Path(__file__).parent / "java").rglob("*Test.java")
    }


def test_the_project_and_the_testbed_are_of_the_same_releases() -> None:
    pom = (PROJECT / "pom.xml").read_text(encoding="utf-8")
    for release in RELEASES.values():
        assert f"<flink.version>{release.version}</flink.version>" in pom
        assert f"<flink.line>{release.line}</flink.line>" in pom
        assert (PROJECT / "src" / f"flink-{release.line}" / "java").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_jar_holds_the_connector_the_runner_and_the_hook_and_is_made_once(release: Release, jdk: Path) -> None:
    home = flink_home(release=release)
    kit = kit_jar(home, jdk, release)
    names = set(zipfile.ZipFile(kit).namelist())
    assert {"sluice/Run.class", "META-INF/services/org.apache.flink.table.factories.Factory"} <= names
    assert f"{ALLOCATOR}/SlotSharingSlotAllocator.class" in names
    assert (f"{ALLOCATOR}/PlacedSlotMatchingResolver.class" in names) == (release.line == "2.3")
    made = kit.stat().st_mtime_ns
    assert kit_jar(home, jdk, release) == kit and kit.stat().st_mtime_ns == made
