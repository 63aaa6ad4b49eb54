from pathlib import Path

import pytest

from models.errors import SluiceError
from testbeds.local import jdk
from testbeds.local.jdk import find_jdk


def _installed(folder: Path, version: str, *tools: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    for tool in tools:
        (folder / "bin" / tool).touch(mode=0o755)
    return folder


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jdk, "_INSTALLED", tmp_path / "jvm")


def test_the_one_that_is_named_comes_before_those_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = _installed(tmp_path / "jvm" / "java-17", "17.0.15", "java", "javac")
    assert find_jdk() == installed
    named = _installed(tmp_path / "named", "11.0.2", "java", "javac")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert find_jdk() == named


def test_one_without_compiler_or_of_a_version_that_flink_does_not_run_on_is_passed_over(tmp_path: Path) -> None:
    _installed(tmp_path / "jvm" / "a-runtime", "17.0.15", "java")
    _installed(tmp_path / "jvm" / "b-old", "1.8.0_402", "java", "javac")
    _installed(tmp_path / "jvm" / "c-new", "25.0.1", "java", "javac")
    with pytest.raises(SluiceError, match=r"version 11 to 21.*openjdk-17-jdk-headless.*JAVA_HOME"):
        find_jdk()
    fit = _installed(tmp_path / "jvm" / "d-fit", "21", "java", "javac")
    assert find_jdk() == fit
