import zipfile
from pathlib import Path

import pytest

from flink_client.rest.answers import Vertex
from models.errors import InvalidInput
from testbeds.flink.programs.user_programs import source_name, with_kit

SERVICE = "META-INF/services/org.apache.flink.table.factories.Factory"


def _jar(path: Path, **content: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, text in content.items():
            made.writestr(name.replace("__", "/"), text)
    return path


def test_a_users_jar_gets_the_kits_classes_and_the_services_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    kit = _jar(tmp_path / "kit.jar", **{"sluice__Run.class": "kit", SERVICE: "sluice.Factory"})
    own = {
        "example__Main.class": "own",
        "sluice__Run.class": "stale",
        "META-INF__ME.SF": "signed",
        SERVICE: "own.Factory",
    }
    merged = with_kit([_jar(tmp_path / "own.jar", **own)], kit)
    with zipfile.ZipFile(merged) as archive:
        content = {name: archive.read(name).decode() for name in archive.namelist()}
    assert merged.name == "own.jar"
    assert content == {"example/Main.class": "own", "sluice/Run.class": "kit", SERVICE: "own.Factory\nsluice.Factory"}
    assert with_kit([tmp_path / "own.jar"], kit) == merged


def test_what_is_no_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.jar").write_text("x")
    for name in ("no.jar", "nowhere.jar"):
        with pytest.raises(InvalidInput, match="must be a jar"):
            with_kit([tmp_path / name], tmp_path / "kit.jar")


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("Source: [1]:TableSourceScan(table=[[default_catalog, default_database, bids]], fields=[a])", "bids"),
        ("Source: sluice.Rated(words)", "words"),
    ],
)
def test_a_source_is_called_as_its_table_or_as_the_jar_names_it(description: str, name: str) -> None:
    assert source_name(Vertex("a", description, 1, 0)) == name


def test_a_source_whose_rate_cannot_be_set_is_refused() -> None:
    with pytest.raises(InvalidInput, match="connector 'sluice'"):
        source_name(Vertex("a", "Source: KafkaSource(words)", 1, 0))
