"""Finding a Java: the versions it takes, in which order, and what it says when there is none."""

from pathlib import Path

import pytest

from models.errors import SluiceError
from spark import java
from spark.java import find_java

WITH_VECTORS = 'MODULES="java.base jdk.incubator.vector"'


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "_INSTALLED", tmp_path / "jvm")


def install(home: Path, version: str, modules: str = WITH_VECTORS) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n{modules}\n')
    return home


def test_no_java_is_one_line_with_the_fix() -> None:
    with pytest.raises(SluiceError, match="apt-get install openjdk-17-jre-headless") as caught:
        find_java()
    assert "\n" not in str(caught.value)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "jvm" / "a", "17.0.1")
    mine = install(tmp_path / "mine", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(mine))
    assert find_java() == mine


def test_the_java_on_the_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = install(tmp_path / "elsewhere", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java() == home


@pytest.mark.parametrize(
    ("version", "modules"), [("1.8.0_402", ""), ("11.0.22", WITH_VECTORS), ("17.0.1", 'MODULES="java.base"')]
)
def test_what_is_too_old_or_lacks_a_module_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, modules: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "mine", version, modules)))
    with pytest.raises(SluiceError, match="Java 17 or newer"):
        find_java()
    install(tmp_path / "jvm" / "b", "25.0.1")
    oldest = install(tmp_path / "jvm" / "c", "17.0.9")
    assert find_java() == oldest
