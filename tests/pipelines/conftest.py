"""An MLflow store that was migrated once, a real Kubernetes API server, and runs of the pipeline whose exploration is
StreamBed's published one."""

import csv
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from models.capacity.exploration.space import recorded_steps
from models.capacity.observation import Observation
from on_kubernetes.api_server import ApiServer, find_go
from pipelines.checks.reporting import CheckReport
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.registry.tracking import DATABASE, FOLDER, TRACKING_VARIABLE, create_database
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.digests import digest
from pipelines.store.samples import write_samples
from pipelines.store.workspace import Artifact, Workspace

ExploredRun = Callable[..., PipelineRun]


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real Kubernetes API server."""
    if find_go() is None:
        pytest.skip("building a Kubernetes API server takes Go 1.26")
    with ApiServer(tmp_path_factory.mktemp("api-server")) as started:
        yield started


@pytest.fixture(autouse=True)
def no_tracking_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests keep to their own MLflow, whatever the environment says."""
    monkeypatch.delenv(TRACKING_VARIABLE, raising=False)


@pytest.fixture(params=["local", "memory"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """A folder that is not there yet, and a store that is no folder."""
    if request.param == "local":
        return Workspace(tmp_path / "a folder" / "workspace")
    fsspec.filesystem("memory").store.clear()
    return Workspace("memory://workspace")


@pytest.fixture
def local(tmp_path: Path) -> Workspace:
    """Where what is wanted is a folder."""
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's database, empty. Its migrations take 2 s, so they run once."""
    path = tmp_path_factory.mktemp("mlflow") / DATABASE
    create_database(path)
    return path


@pytest.fixture(scope="session")
def make_tracked_workspace(migrated_database: Path) -> Callable[[Path], Workspace]:
    """Makes a workspace in a folder, with an empty MLflow store of its own."""

    def make(folder: Path) -> Workspace:
        workspace = Workspace(folder)
        shutil.copyfile(migrated_database, workspace.local_folder(FOLDER) / DATABASE)
        return workspace

    return make


@pytest.fixture
def tracked_workspace(tmp_path: Path, make_tracked_workspace: Callable[[Path], Workspace]) -> Workspace:
    return make_tracked_workspace(tmp_path / "workspace")


@pytest.fixture(scope="session")
def q5_observations() -> tuple[Observation, ...]:
    """The search of q5 in `tests/data/streambed/search_q5.csv` (StreamBed, published data set), in its order."""
    path = Path(__file__).parents[1] / "data" / "streambed" / "search_q5.csv"
    with path.open(encoding="utf-8") as file:
        return tuple(
            Observation(
                run=f"search-q5-{row['order']}",
                task_slots=int(row["task_slots"]),
                memory_mb=float(row["tm_memory_mb"]),
                parallelism={"source": int(row["source_parallelism"])},
                mst=float(row["mst_events_per_s"]),
                bids2_rate=float(row["bids2_objective"]),
            )
            for row in csv.DictReader(file)
        )


def artifact_of(report: CheckReport) -> Artifact:
    output = report.model_dump(mode="json")
    return Artifact(inputs={}, digest=digest(output), output=output)


@pytest.fixture(scope="session")
def explored_in(q5_observations: tuple[Observation, ...]) -> Callable[[Workspace], ExploredRun]:
    """Makes, for a workspace, what makes runs in it whose exploration took the first of q5's observations."""

    def in_workspace(workspace: Workspace) -> ExploredRun:
        def make(name: str = "first", observations: int = 14, kept_back: int = 8, **fields: str) -> PipelineRun:
            record = ExplorationRecord(
                job="nexmark-q5",
                testbed="recorded",
                slots_per_worker=16,
                observations=q5_observations[:observations],
                kept_back=q5_observations[observations : observations + kept_back],
                steps=recorded_steps([(o.budget, o.mst) for o in q5_observations[:observations]]),
                stopped_because="all published measurements were taken",
            )
            asked = {"twin": "none", **fields}  # there are no samples to make one of
            run = PipelineRun(PlanRequest(job="nexmark-q5", rate=2.5e6, run=name, **asked), workspace)
            workspace.once(run.key(EXPLORATION_FILE), {}, ExplorationRecord, lambda: record)
            for table in ("samples", "observations"):
                report = CheckReport(
                    table=table, success=True, rows=1, evaluated=1, broken=(), quarantine=(), docs="index.html"
                )
                workspace.write(run.key(f"checks/{table}.json"), artifact_of(report))
            write_samples(workspace, pa.table({"job": ["nexmark-q5"], "run": [f"{name}-m000"], "task": [0]}))
            return run

        return make

    return in_workspace


@pytest.fixture
def explored(tracked_workspace: Workspace, explored_in: Callable[[Workspace], ExploredRun]) -> ExploredRun:
    """Makes runs in the test's own workspace."""
    return explored_in(tracked_workspace)


@pytest.fixture(scope="session")
def recorded_request() -> PlanRequest:
    """StreamBed Table 3: q5 at 2.5 M events/s with 4 GB a slot, from the first 14 rows of the published search."""
    return PlanRequest(
        job="nexmark-q5",
        rate=2_500_000,
        testbed="recorded",
        measurements=str(Path(__file__).parents[1] / "data" / "streambed" / "search_q5.csv"),
        measurement_rows=14,
        model="log",
        memory_mb=65536,
    )


@pytest.fixture(scope="session")
def planned_workspace(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Path, recorded_request: PlanRequest
) -> Workspace:
    """A workspace with version 1 of the plan that `recorded_request` asks for; tests may add versions."""
    workspace = Workspace(tmp_path_factory.mktemp("planned"))
    shutil.copyfile(migrated_database, workspace.local_folder(FOLDER) / DATABASE)
    run_all(PipelineRun(recorded_request, workspace))
    return workspace
