"""The exploration stores every measurement, and resumes from the stored ones."""

import shutil
from pathlib import Path

import pytest
import yaml

from models.capacity.exploration.question import SizingQuestion
from models.capacity.exploration.space import SearchSpace
from models.errors import Infeasible, SluiceError
from models.job import Job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.configure import Measurement, Optimizer
from pipelines.measuring.exploration_record import ExplorationRecord
from pipelines.progress import Progress, Quiet
from pipelines.run import PipelineRun
from pipelines.stages import explore as stage
from pipelines.stages.check import verified_samples
from pipelines.stages.profile import ProfileRecord, profile
from pipelines.store.samples import runs_of, samples_key
from pipelines.store.workspace import Workspace
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.run import SimulatedRun

SEARCH_Q5 = Path(__file__).parents[2] / "data" / "streambed" / "search_q5.csv"


class Saying(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, what: str) -> None:
        self.lines.append(what)


def run_in(folder: Path, progress: Progress | None = None, **fields: object) -> PipelineRun:
    request = {"job": "wordcount", "rate": 16_667, "max_task_slots": 12, "max_measurements": 3, **fields}
    run = PipelineRun(PlanRequest.model_validate(request), Workspace(folder), progress or Quiet())
    run.start()
    return run


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the run `r`, explored without a disturbance."""
    folder = tmp_path_factory.mktemp("explored")
    run = run_in(folder, run="r")
    profile(run)
    stage.explore(run)
    return folder


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that are deployed, in order."""
    names: list[str] = []
    deploy = Simulator.deploy

    def noting(self: Simulator, job: Job, configuration: Configuration, *, run: str, seed: int) -> SimulatedRun:
        names.append(run)
        return deploy(self, job, configuration, run=run, seed=seed)

    monkeypatch.setattr(Simulator, "deploy", noting)
    return names


def test_the_profile_is_taken_below_saturation_on_a_worker_for_each_operator(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    profile(run)
    record = run.output("profile.json", ProfileRecord)
    # A Count task takes the words of 833.3 sentences a second.
    # Three standard deviations over seeds (5.5 %), and the 4 % by which their mean is below that rate.
    assert record.saturated_rate == pytest.approx(1e6 / 60 / 20, rel=0.2)
    assert record.profiled_rate == record.saturated_rate / 2
    samples = run.workspace.read_table(f"samples/job=wordcount/run={record.run}/samples.parquet")
    assert set(samples["worker"].to_pylist()) == {"profile-source", "profile-flatmap", "profile-count"}


def test_corners_come_first_and_single_task_runs_are_reused(tmp_path: Path) -> None:
    run = run_in(tmp_path, exploration="streambed")
    profile(run)
    stage.explore(run)
    record = run.output("exploration.json", ExplorationRecord)
    budgets = [(o.task_slots, o.memory_mb) for o in record.observations]
    assert budgets[:4] == [(2, 8192.0), (12, 8192.0), (2, 65536.0), (12, 65536.0)]
    assert len(budgets) == 7
    assert [s.suggested_by for s in record.steps] == ["corner"] * 4 + ["bayesian"] * 3
    singles = [name for name in runs_of(run.workspace, "wordcount", run.run_id) if "single" in name]
    bounds = {(o.bound_by.vertex, o.bound_by.cause) for o in record.observations if o.bound_by is not None}
    assert bounds <= {("count", "CPU"), ("flatmap", "CPU")}
    assert all(o.facts is not None and o.bound_by is not None for o in record.observations)
    corners = {memory for slots, memory in budgets if slots == 2}
    assert len(singles) == len({memory for _, memory in budgets} - corners)


@pytest.mark.slow
def test_a_run_of_the_same_name_measures_only_what_is_new(tmp_path: Path, measured: list[str]) -> None:

    def once_more(**fields: object) -> tuple[list[int], list[str]]:
        measured.clear()
        run = run_in(tmp_path, run="r", memory_mb=8192, **fields)
        profile(run)
        stage.explore(run)
        record = run.output("exploration.json", ExplorationRecord)
        return [o.task_slots for o in record.observations[:2]], measured[:]

    assert once_more(max_task_slots=8)[1][:2] == ["r-profile", "r-m000"]
    assert once_more(max_task_slots=8, rate=20_000) == ([2, 8], [])
    slots, again = once_more(max_task_slots=12)
    assert slots == [2, 12] and "r-m001" in again and "r-m000" not in again and "r-profile" not in again
    measured.clear()
    profile(run_in(tmp_path, run="r", memory_mb=8192, seed=1))
    assert measured == ["r-profile"], "with another seed it is another measurement"


@pytest.mark.slow
def test_an_interrupted_exploration_repeats_no_measurement(
    tmp_path: Path, explored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(tmp_path, run="r")
    profile(run)
    measured: list[str] = []
    measure = Optimizer._measure

    def failing_once(self: Optimizer, *arguments: object) -> Measurement:
        measured.append(str(arguments[4]))
        if len(measured) == 4:
            raise SluiceError("the cluster was gone")
        return measure(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Optimizer, "_measure", failing_once)
    with pytest.raises(SluiceError, match="gone"):
        stage.explore(run)
    stage.explore(run)
    finished = [name for i, name in enumerate(measured) if i != 3]
    assert len(finished) == len(set(finished))
    undisturbed = run_in(explored, run="r").output("exploration.json", ExplorationRecord)
    assert run.output("exploration.json", ExplorationRecord) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("damaged", ["r-profile", "r-m001", "r-m009"])
def test_a_flipped_bit_in_samples_is_named_and_only_that_measurement_is_repeated(
    tmp_path: Path, explored: Path, measured: list[str], caplog: pytest.LogCaptureFixture, damaged: str
) -> None:
    shutil.copytree(explored, tmp_path, dirs_exist_ok=True)
    run = run_in(tmp_path, run="r")
    before = run.output("exploration.json", ExplorationRecord)
    path = tmp_path / samples_key("wordcount", damaged)
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 3] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(SluiceError, match=f"samples must be the measured ones, but .*{damaged}/samples.parquet"):
        verified_samples(run)

    measured.clear()
    profile(run)
    stage.explore(run)
    assert measured == [damaged]
    assert f"{damaged}/samples.parquet has the SHA-256" in caplog.text
    assert path.read_bytes() == content, "the simulator repeats a measurement exactly"
    assert run.output("exploration.json", ExplorationRecord) == before
    verified_samples(run)


@pytest.mark.slow
def test_observations_are_kept_back_for_the_review(explored: Path) -> None:
    record = run_in(explored, run="r").output("exploration.json", ExplorationRecord)
    assert len(record.kept_back) == 3
    assert not {o.run for o in record.kept_back} & {o.run for o in record.observations}
    assert len(record.steps) == len(record.observations)
    assert {o.task_slots for o in record.kept_back} <= set(range(3, 12)), "in gaps between the corners"


@pytest.mark.slow
def test_the_interval_closes_and_its_end_says_what_would_help(tmp_path: Path) -> None:
    said = Saying()
    run = run_in(tmp_path, rate=400_000, progress=said)
    profile(run)
    stage.explore(run)
    record = run.output("exploration.json", ExplorationRecord)
    assert [s.suggested_by for s in record.steps] == ["corner"] * 4 + ["gap"] + ["target"] * 2
    slots = [s.slots_needed for s in record.steps]
    assert slots[0] is None and slots[-1] is not None
    lines = [line for line in said.lines if line.startswith("explore:  ")]
    bound = record.observations[6].bound_by
    assert bound is not None and lines[6].endswith(f" records/s, {bound.title}; {slots[-1].text}")
    by_laws = "so far by the growth laws alone, the twin comes next"
    assert said.lines[-1] == f"explore: 7 observations; {record.stopped_because}; {by_laws}"
    assert record.would_help is not None and record.would_help.budget.task_slots > 12
    assert record.would_help.text in record.stopped_because
    assert "limit of 3 measurements" in record.stopped_because


@pytest.mark.slow
def test_a_rate_that_the_testbed_reaches_is_answered_with_few_measurements(tmp_path: Path) -> None:
    run = run_in(tmp_path, rate=4_000, precision=1.0, max_measurements=20)
    profile(run)
    stage.explore(run)
    record = run.output("exploration.json", ExplorationRecord)
    assert len(record.observations) < 10
    assert record.stopped_because.endswith("within 100%")
    assert record.would_help is None


@pytest.mark.slow
def test_another_rate_is_explored_from_what_was_measured_for_the_first(
    tmp_path: Path, explored: Path, measured: list[str]
) -> None:
    shutil.copytree(explored, tmp_path, dirs_exist_ok=True)

    def again(**fields: object) -> ExplorationRecord:
        measured.clear()
        run = run_in(tmp_path, run="r", **fields)
        profile(run)
        stage.explore(run)
        return run.output("exploration.json", ExplorationRecord)

    first = run_in(tmp_path, run="r").output("exploration.json", ExplorationRecord)
    second = again(rate=100_000)
    assert measured == []
    assert [o.run for o in second.measured] == [o.run for o in first.measured]
    assert second.steps[-1].slots_needed != first.steps[-1].slots_needed
    longer = again(rate=100_000, max_measurements=4)
    assert measured == ["r-m010"]
    assert longer.observations[7] == first.kept_back[0], "kept back by the first, used by the second"


@pytest.mark.slow
def test_a_run_that_an_earlier_version_explored_as_streambed_is_kept_and_resumed(
    tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(tmp_path, run="r")
    profile(run)
    with monkeypatch.context() as earlier:
        earlier.setattr(PlanRequest, "explores_for_target", property(lambda _: False))
        stage.explore(run)
    before = run.output("exploration.json", ExplorationRecord)
    assert before.steps[-1].suggested_by == "bayesian"

    measured.clear()
    stage.explore(run)
    assert measured == []
    assert run.output("exploration.json", ExplorationRecord) == before

    folder = tmp_path / run.key()
    for name in ("exploration.json", *(f"observations/m{i:03}.json" for i in range(6, 10))):
        (folder / name).unlink()
    stage.explore(run)
    after = run.output("exploration.json", ExplorationRecord)
    assert after.observations[:6] == before.observations[:6], "those that were stored"
    assert {name for name in measured if "single" not in name} == {"r-m006", "r-m007", "r-m008", "r-m009"}
    assert {s.suggested_by for s in after.steps[4:]} <= {"gap", "target"}


def test_memory_is_planned_for_all_operators_with_state_that_share_a_slot(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot of the cluster has 4,096 MiB, as one of 16 slots of 65,536 MiB: for two operators, 16 of 32,768 MiB fit."""
    document = yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text())
    document["operators"][1] |= {"keys": {"distinct": 1}, "state": {}}
    document["vertices"] = [{"operators": [o["name"]], "slot_sharing_group": "default"} for o in document["operators"]]
    (tmp_path / "wordcount.yaml").write_text(yaml.safe_dump(document))
    run = run_in(tmp_path, job=str(tmp_path / "wordcount.yaml"), cluster="production")
    profile(run)

    def asked(_space: SearchSpace, _seed: int, question: SizingQuestion, *_rest: object) -> None:
        raise Infeasible(f"asked for {question.memory_levels_mb}")

    monkeypatch.setattr(stage, "TargetedExploration", asked)
    with pytest.raises(Infeasible, match=r"asked for \(8192\.0, 16384\.0, 32768\.0\)"):
        stage.explore(run)


def test_fewer_slots_than_operators_are_infeasible(tmp_path: Path) -> None:
    run = run_in(tmp_path, max_task_slots=1)
    profile(run)
    with pytest.raises(Infeasible, match="2 operators besides its sources"):
        stage.explore(run)


def test_recorded_measurements_are_taken_in_their_order(tmp_path: Path) -> None:
    fields = {"job": "nexmark-q5", "testbed": "recorded", "measurements": str(SEARCH_Q5), "measurement_rows": 14}
    run = run_in(tmp_path, **fields)
    stage.explore(run)
    record = run.output("exploration.json", ExplorationRecord)
    assert (len(record.observations), len(record.kept_back)) == (14, 8), "the rows that are not used judge the model"
    assert (record.observations[0].task_slots, record.observations[0].memory_mb) == (9, 32768)
    assert record.observations[-1].mst == pytest.approx(949_829.5, abs=0.1)
    assert record.steps[0].loocv == {}
    assert {s.suggested_by for s in record.steps} == {"recorded"}
