from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.inputs.catalogue import CATALOGUE_VARIABLE, cluster_names, job_names, load_cluster, load_job

CLUSTER = "name: mine\ncount: 2\nslots: 4\n"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of one's own with one cluster and no job."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "mine.yaml").write_text(CLUSTER)
    monkeypatch.setenv(CATALOGUE_VARIABLE, str(tmp_path))
    return tmp_path


def test_a_job_is_found_by_name_and_by_path() -> None:
    by_name = load_job("nexmark-q5")
    by_path = load_job(Path(__file__).parents[3] / "jobs" / "nexmark-q5.yaml")
    assert by_name == by_path and by_name.name == "nexmark-q5"


def test_names_sort_as_people_count() -> None:
    assert job_names().index("nexmark-q2") < job_names().index("nexmark-q11")


@pytest.mark.parametrize(
    ("name", "workers", "slots", "cores", "memory_mb"),
    [
        ("flink-local", 4, 16, 0.15, 1024),  # assumed
        ("testbed", 3, 48, 16, 65536),  # StreamBed section 8.1
        ("production", 128, 2048, 16, 65536),
        ("capsys-4x4", 4, 16, 4, 32768),  # CAPSys section 3.1
        ("capsys-4x8", 4, 32, 8, 32768),  # CAPSys section 6.2.1
        ("capsys-18x8", 18, 144, 8, 32768),  # CAPSys section 6.2.2: "the same 144-slot cluster"
    ],
)
def test_clusters_are_as_their_sources_have_them(
    name: str, workers: int, slots: int, cores: float, memory_mb: float
) -> None:
    cluster = load_cluster(name)
    assert (len(cluster.workers), cluster.slots) == (workers, slots)
    assert {(w.cores, w.memory_mb) for w in cluster.workers} == {(cores, memory_mb)}
    assert all(w.io and w.net for w in cluster.workers) == (name != "flink-local")


def test_every_cluster_of_the_catalogue_is_tested() -> None:
    assert cluster_names() == [
        "arena",
        "capsys-4x4",
        "capsys-4x8",
        "capsys-18x8",
        "flink-local",
        "production",
        "testbed",
    ]


@pytest.mark.parametrize(
    ("asked", "near"), [("nexmark-5", "'nexmark-q5'"), ("q11", "'nexmark-q11'"), ("wordcuont", "'wordcount'")]
)
def test_an_unknown_name_gets_the_nearest_ones(asked: str, near: str) -> None:
    with pytest.raises(InvalidInput, match=f"no job '{asked}' in the catalogue; did you mean .*{near}"):
        load_job(asked)


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(InvalidInput, match="no cluster 'zzz' in the catalogue; known clusters: arena, "):
        load_cluster("zzz")


def test_a_path_that_does_not_exist_is_no_name() -> None:
    with pytest.raises(InvalidInput, match="does not exist; check the path"):
        load_job("./nowhere/nexmark-q5.yaml")


def test_a_suffix_makes_it_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yml").write_text(CLUSTER)
    assert load_cluster("mine.yml").slots == 8


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"workers": [{"name": "tm-1", "slots": 3}]}')
    assert load_cluster(path).slots == 3


def test_another_catalogue_can_be_named(own: Path) -> None:
    assert cluster_names() == ["mine"] and job_names() == []
    assert load_cluster("mine").slots == 8


def test_an_empty_catalogue_says_so(own: Path) -> None:
    with pytest.raises(InvalidInput, match=f"{own / 'jobs'} is empty"):
        load_job("nexmark-q5")


def test_a_catalogue_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CATALOGUE_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInput, match=f"does not exist; set {CATALOGUE_VARIABLE}"):
        job_names()


def test_a_file_is_found_under_its_own_name_only(own: Path) -> None:
    (own / "clusters" / "other.yaml").write_text(CLUSTER)
    with pytest.raises(InvalidInput, match="field 'name' must be the file's own name 'other', but got 'mine'"):
        load_cluster("other")
    assert load_cluster(own / "clusters" / "other.yaml").name == "mine"


def test_sql_that_is_named_must_be_there(tmp_path: Path) -> None:
    job = load_job("nexmark-q1").model_dump_json(by_alias=True)
    (tmp_path / "nexmark-q1.json").write_text(job)
    with pytest.raises(InvalidInput, match=r"field 'sql' names 'nexmark-q1\.sql', which is not beside it"):
        load_job(tmp_path / "nexmark-q1.json")
    (tmp_path / "nexmark-q1.sql").write_text("SELECT 1;")
    assert load_job(tmp_path / "nexmark-q1.json") == load_job("nexmark-q1")
