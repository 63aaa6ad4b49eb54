"""Jars by a stand-in for Maven, so that its failures can be had; the Kafka testbed's tests use the real one."""

import hashlib
from pathlib import Path

import pytest

from models.errors import SluiceError
from testbeds.local.maven import jars, main

FETCHES = """#!/bin/bash
echo "$@" >>"$0.calls"
for argument; do [[ $argument == -DoutputDirectory=* ]] && printf content >"${argument#*=}/one-1.0.jar"; done
exit 0
"""
FAILS = """#!/bin/bash
echo '[INFO] Scanning for projects...'
echo '[ERROR] Could not transfer artifact org.one:one:jar:1.0: Connection refused'
exit 1
"""
EXPECTED = f"{hashlib.sha256(b'content').hexdigest()}  one-1.0.jar\n"


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, the only `mvn` on the PATH."""
    command = tmp_path / "bin" / "mvn"
    command.parent.mkdir()
    command.write_text(FETCHES)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    return command


@pytest.fixture
def pom(tmp_path: Path) -> Path:
    (tmp_path / "one.sha256").write_text(EXPECTED)
    pom = tmp_path / "one.pom.xml"
    pom.write_text("<project/>")
    return pom


def test_jars_are_fetched_once_and_checked_each_time(mvn: Path, pom: Path) -> None:
    folder = jars(pom, "the test")
    assert [path.name for path in folder.iterdir()] == ["one-1.0.jar"]
    assert jars(pom, "the test") == folder
    assert len(mvn.with_name("mvn.calls").read_text().splitlines()) == 1
    (folder / "one-1.0.jar").write_text("changed")
    assert (jars(pom, "the test") / "one-1.0.jar").read_text() == "content"


def test_another_version_is_another_folder(mvn: Path, pom: Path) -> None:
    before = jars(pom, "the test")
    pom.write_text("<project><version>2</version></project>")
    assert jars(pom, "the test") != before


def test_a_jar_of_another_content_is_refused(mvn: Path, pom: Path) -> None:
    mvn.write_text(FETCHES.replace("content", "other"))
    with pytest.raises(SluiceError, match=r"1 of the jars that the test needs .* one-1\.0\.jar for one .*mirror"):
        jars(pom, "the test")
    mvn.write_text("#!/bin/bash\n")
    with pytest.raises(SluiceError, match="none: it was not fetched"):
        jars(pom, "the test")


def test_a_failure_is_reported_in_mavens_words(mvn: Path, pom: Path) -> None:
    mvn.write_text(FAILS)
    with pytest.raises(SluiceError, match=r"the test needs; check the network.*Maven said: \[ERROR\].*refused"):
        jars(pom, "the test")


def test_without_maven_the_error_names_how_to_install_it(
    mvn: Path, pom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SluiceError, match=r"the test needs Maven, .* apt-get install maven"):
        jars(pom, "the test")


def test_digests_are_written_for_what_a_pom_brings(mvn: Path, pom: Path) -> None:
    pom.with_name("one.sha256").unlink()
    main([str(pom)])
    assert pom.with_name("one.sha256").read_text() == EXPECTED
