"""A distribution from packages of a few bytes, fetched by the real pip from a folder."""

import hashlib
import multiprocessing
import zipfile
from pathlib import Path

import pytest

from models.errors import InvalidInput, SluiceError
from testbeds.flink.local.distribution import (
    FLINK,
    FLINK_1_20,
    FLINK_2_3,
    Release,
    damaged_files,
    flink_home,
    release_of,
)


def _wheel(folder: Path, name: str, files: dict[str, str]) -> tuple[str, str]:
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for place, text in files.items():
            wheel.writestr(place, text)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name}==1.0", hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    packages = tmp_path / "packages"
    packages.mkdir()
    scripts = _wheel(packages, "scripts", {"pyflink/bin/flink": "#!/bin/sh", "pyflink/table.py": "not taken"})
    libraries = {"pyflink/conf/config.yaml": "parallelism.default: 1", "pyflink/lib/flink.jar": "jar"}
    settings = _wheel(
        packages, "settings", {**libraries, "pyflink/examples/count.py": "not taken", "pyflink/lib.txt": "no"}
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages))
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    return Release("1.0", (scripts, settings))


def test_what_the_packages_hold_is_merged_and_nothing_else_is_left(release: Release, tmp_path: Path) -> None:
    messages: list[str] = []
    home = flink_home(lambda what, share: messages.append(what), release)
    assert home == tmp_path / "cache" / "flink-1.0"
    found = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert found == {"bin/flink", "conf/config.yaml", "lib/flink.jar", "MANIFEST.json"}
    assert (home / "bin/flink").stat().st_mode & 0o111
    assert messages[-1] == "unpacking Flink"
    assert not list((tmp_path / "cache" / "downloads").iterdir())
    assert not [path for path in home.parent.iterdir() if path.name.startswith(".")]


def test_it_is_fetched_once(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    home = flink_home(release=release)
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert flink_home(release=release) == home


def test_what_an_interrupted_call_had_fetched_is_not_fetched_again(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    for wheel in (tmp_path / "packages").iterdir():
        (downloads / wheel.name).write_bytes(wheel.read_bytes())
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert (flink_home(release=release) / "bin/flink").exists()


def test_a_missing_file_is_noticed_at_once_and_a_changed_one_by_its_digest(release: Release) -> None:
    home = flink_home(release=release)
    (home / "bin/flink").unlink()
    assert (flink_home(release=release) / "bin/flink").read_text() == "#!/bin/sh"
    assert damaged_files(home) == []
    (home / "bin/flink").write_text("#!/bin/no")
    assert damaged_files(home) == ["bin/flink"]


def test_another_content_than_the_expected_is_refused(release: Release) -> None:
    (scripts, _), settings = release.packages
    wrong = Release("1.0", ((scripts, "0" * 64), settings))
    with pytest.raises(SluiceError, match=r"could not be fetched \(scripts==1\.0.*HASH"):
        flink_home(release=wrong)


def test_a_package_that_cannot_be_reached_is_reported_with_pips_words(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(SluiceError, match=r"check the network and pip's settings.*No matching distribution"):
        flink_home(release=release)


def test_a_cache_that_cannot_be_written_is_reported(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(SluiceError, match="SLUICE_CACHE"):
        flink_home(release=release)


def _fetch(release: Release) -> str:
    return str(flink_home(release=release))


def test_several_processes_may_ask_at_once(release: Release, tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        homes = pool.map(_fetch, [release] * 3)
    assert set(homes) == {str(tmp_path / "cache" / "flink-1.0")}
    assert damaged_files(Path(homes[0])) == []


def test_a_version_names_a_release_with_or_without_its_patch_number() -> None:
    assert release_of("1.20") == release_of("1.20.1") == FLINK_1_20 == FLINK
    assert release_of("2.3") == release_of("2.3.0") == FLINK_2_3
    for other in ("2.2.0", "1.2", "2", "", "2.30"):
        with pytest.raises(InvalidInput, match=r"must run version 1\.20 or 2\.3, but got"):
            release_of(other)
