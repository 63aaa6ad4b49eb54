"""Calibration end to end: a simulator whose costs differ from the job's file plays the real cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job, Keys
from pipelines.calibration.calibrate import calibrate
from pipelines.calibration.configurations import larger_ones, one_task_each
from pipelines.calibration.fitting import MANY_KEYS
from pipelines.calibration.output import write_files
from pipelines.calibration.request import Calibration, CalibrationRequest, Role
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.inputs.parsing.files import read_as
from pipelines.measuring.estimate import SHORT
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.protocol import Configuration, Disturbed, Limits, Run
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Physics
from testbeds.suite import small_job

MEMORY_MB = 8192.0
BELIEVED = Cluster.model_validate({"name": "pair", "count": 2, "slots": 8, "cores": 4, "memory_mb": MEMORY_MB})
EXACT = SHORT.model_copy(update={"iterations": 12, "sensitivity": 0.01})
REQUEST = CalibrationRequest(memory_mb=MEMORY_MB, mst=EXACT, rehearsal_s=0.0)
SHORTER = REQUEST.model_copy(update={"configurations": 2, "held_out": 1, "mst": SHORT})
REAL_COST = {"source": 1.0, "map": 3.0, "count": 5.0, "sink": 2.0}
"""Real cost of a record, as a multiple of the job's file."""
REAL_CORES = 0.5


@dataclass
class Real:
    """A cluster with fewer cores than believed, and with other costs than in the file."""

    stops_before: int | None = None
    """Deployment before which it is killed."""
    fails_first: int = 0
    """Deployments that fail."""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Operator -> fields that it really has."""
    machine: Physics = field(default_factory=lambda: Physics().ideal())
    deployed: list[dict[str, int]] = field(default_factory=list)
    name: str = "real"
    cluster: Cluster = BELIEVED

    def __post_init__(self) -> None:
        workers = tuple(w.model_copy(update={"cores": REAL_CORES}) for w in BELIEVED.workers)
        self._simulator = Simulator(BELIEVED.model_copy(update={"workers": workers}), (MEMORY_MB,), self.machine)

    @property
    def limits(self) -> Limits:
        return self._simulator.limits

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> Run:
        if len(self.deployed) == self.stops_before:
            raise KeyboardInterrupt
        self.deployed.append(dict(configuration.parallelism))
        if len(self.deployed) <= self.fails_first:
            raise Disturbed("Flink reported nothing for 5.2 s")
        return self._simulator.deploy(self._really(job), configuration, run=run, seed=seed)

    def _really(self, job: Job) -> Job:
        operators = []
        for o in job.operators:
            cost = o.cost.model_copy(update={"cpu_s": o.cost.cpu_s * REAL_COST[o.name]})
            operators.append(o.model_copy(update={"cost": cost, **self.changes.get(o.name, {})}))
        return job.model_copy(update={"operators": tuple(operators)})


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    return calibrate(small_job(), Real(), REQUEST, workspace, Quiet())


def test_it_finds_what_records_cost_and_what_cores_there_are(calibrated: Calibration) -> None:
    for name in ("map", "count", "sink"):
        said = small_job().operator(name).cost.cpu_s
        assert calibrated.job.operator(name).cost.cpu_s == pytest.approx(said * REAL_COST[name], rel=0.05)
    assert [w.cores for w in calibrated.cluster.workers] == pytest.approx([REAL_CORES] * 2, rel=0.02)
    assert calibrated.common_factor == pytest.approx(1.0, abs=0.03)
    assert calibrated.job.operator("map").selectivity == pytest.approx(0.5, rel=0.02)
    assert calibrated.job.operator("map").cost.bytes_out == pytest.approx(50, rel=0.01)


def test_it_then_predicts_what_it_has_not_seen(calibrated: Calibration) -> None:
    roles = [c.role for c in calibrated.comparisons]
    assert roles == [Role.CALIBRATION, Role.CALIBRATION, Role.HELD_OUT, Role.HELD_OUT]
    assert calibrated.calibrated_error < 0.08
    assert calibrated.uncalibrated_error > 1.0
    slots = [sum(tasks for name, tasks in c.parallelism.items() if name != "source") for c in calibrated.comparisons]
    assert slots == sorted(set(slots)) and slots[0] == 3
    for one in calibrated.comparisons:
        assert one.calibrated_error == pytest.approx(one.calibrated / one.measured - 1)


def test_it_says_where_each_figure_comes_from(calibrated: Calibration) -> None:
    source = calibrated.job.operator("count").figures_from
    assert "measured on real (pair), runs calibration-" in source
    assert "CPU" in source and "state accesses" in source and "selectivity" in source
    assert source.endswith("; keys, state: assumed")
    assert "what was not measured: assumed" in calibrated.job.figures_from


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_its_files_are_read_as_any_others(calibrated: Calibration, tmp_path: Path, suffix: str) -> None:
    job, cluster, machine = write_files(calibrated, tmp_path / f"mine{suffix}")
    assert read_as(job, Job) == calibrated.job
    assert read_as(cluster, Cluster) == calibrated.cluster
    assert read_as(machine, Physics) == calibrated.machine
    assert load_job(job).operations is None and load_cluster(cluster).flink is None


def test_files_need_a_known_ending_and_a_folder(calibrated: Calibration, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must end in"):
        write_files(calibrated, tmp_path / "mine.txt")
    with pytest.raises(InvalidInput, match="make it first"):
        write_files(calibrated, tmp_path / "nowhere" / "mine.yaml")


@pytest.mark.slow
def test_what_was_measured_before_it_was_killed_is_not_measured_again(tmp_path: Path) -> None:
    request = SHORTER.model_copy(update={"configurations": 3})
    killed, second, third = Real(stops_before=2), Real(), Real()
    with pytest.raises(KeyboardInterrupt):
        calibrate(small_job(), killed, request, Workspace(tmp_path), Quiet())
    first = calibrate(small_job(), second, request, Workspace(tmp_path), Quiet())
    again = calibrate(small_job(), third, request, Workspace(tmp_path), Quiet())
    assert (len(killed.deployed), len(second.deployed), len(third.deployed)) == (2, 1, 0)
    assert first == again


def test_a_failing_measurement_is_repeated_and_finally_reported(tmp_path: Path) -> None:
    real = Real(fails_first=2)
    calibrate(small_job(), real, SHORTER, Workspace(tmp_path / "a"), Quiet())
    assert len(real.deployed) == 4
    with pytest.raises(SluiceError, match=r"reported nothing for 5\.2 s"):
        calibrate(small_job(), Real(fails_first=3), SHORTER, Workspace(tmp_path / "b"), Quiet())


def test_it_warms_up_once_with_a_task_on_each_worker(tmp_path: Path) -> None:
    request = SHORTER.model_copy(update={"rehearsal_s": 5.0})
    real = Real()
    calibrate(small_job(), real, request, Workspace(tmp_path), Quiet())
    assert [tasks["map"] for tasks in real.deployed] == [2, 1, 4]


def test_sources_get_no_more_tasks_than_the_testbed_has_room_for() -> None:
    limits = Limits(max_task_slots=8, memory_levels_mb=(MEMORY_MB,), slots_per_worker=4, max_source_tasks=3)
    cpu_s = {"map": 4e-6, "count": 2e-5, "sink": 1e-6}
    assert one_task_each(small_job(), limits, REQUEST)["source"] == 2
    # A source task emits 1,000 records/s: 3 budgets up to 8 slots want 1.5 x 10,000 x slots / 3.
    larger = larger_ones(small_job(), cpu_s, {"source": 1000.0}, 10_000.0, limits, REQUEST)
    assert [tasks["source"] for tasks in larger] == [3, 3, 3]
    unlimited = larger_ones(
        small_job(), cpu_s, {"source": 2000.0}, 1000.0, replace(limits, max_source_tasks=None), REQUEST
    )
    assert [tasks["source"] for tasks in unlimited] == [2, 2, 2]


@pytest.mark.parametrize(
    ("really", "found"),
    [
        ({"distinct": 10_000_000}, {"distinct": MANY_KEYS, "hot_share": 0.0}),
        ({"distinct": 10_000_000, "hot_share": 0.4, "hot_period_records": 1e12}, {"hot_share": 0.4}),
    ],
)
def test_skew_is_measured_where_keys_are_unknown(
    tmp_path: Path, really: dict[str, Any], found: dict[str, float]
) -> None:
    operators = tuple(
        o.model_copy(update={"keys": Keys(distinct=1)}) if o.name == "count" else o for o in small_job().operators
    )
    job = small_job().model_copy(update={"operators": operators})
    real = Real(changes={"count": {"keys": Keys(**really)}})
    request = SHORTER.model_copy(update={"configurations": 3})
    keys = calibrate(job, real, request, Workspace(tmp_path), Quiet()).job.operator("count").keys
    assert keys is not None
    for name, value in found.items():
        assert getattr(keys, name) == pytest.approx(value, abs=0.05)


@pytest.mark.parametrize("block_latency_s", [0.0, 1e-4])
def test_waits_for_a_device_are_inferred_from_the_growth_of_the_mst(tmp_path: Path, block_latency_s: float) -> None:
    # 10,000 keys of 100 kB: far more than one task caches, and less than four of them do.
    operators = tuple(
        o
        if o.state is None
        else o.model_copy(update={"state": o.state.model_copy(update={"bytes_per_key": 100_000.0})})
        for o in small_job().operators
    )
    job, ideal = small_job().model_copy(update={"operators": operators}), Physics().ideal()
    state = ideal.state.model_copy(update={"block_latency_s": block_latency_s})
    real = Real(machine=ideal.model_copy(update={"state": state}))
    request = SHORTER.model_copy(update={"configurations": 3})
    found = calibrate(job, real, request, Workspace(tmp_path), Quiet())
    assert found.machine.state.block_latency_s == block_latency_s


@pytest.mark.parametrize("source_burst_s", [2.0, "all"])
def test_sources_catch_up_what_those_do_that_were_measured(tmp_path: Path, source_burst_s: float | str) -> None:
    real = Real(machine=Physics().ideal().model_copy(update={"source_burst_s": source_burst_s}))
    found = calibrate(small_job(), real, SHORTER, Workspace(tmp_path), Quiet())
    *_, machine = write_files(found, tmp_path / "mine.yaml")
    assert read_as(machine, Physics).source_burst_s == source_burst_s


def refused(change: dict[str, Any]) -> Callable[[Path], None]:
    return lambda folder: calibrate(  # type: ignore[return-value]
        small_job(), Real(), REQUEST.model_copy(update=change), Workspace(folder), Quiet()
    )


def test_too_few_slots_or_configurations_are_reported(tmp_path: Path) -> None:
    with pytest.raises(Infeasible, match="need at least 6 task slots, but there are 3"):
        refused({"most_tasks": 1})(tmp_path)
    with pytest.raises(InvalidInput, match="at least one configuration must not be held out"):
        refused({"held_out": 4})(tmp_path)
