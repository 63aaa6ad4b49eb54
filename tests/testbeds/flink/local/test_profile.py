import pytest

from models.errors import Infeasible, InvalidInput
from testbeds.flink.local.distribution import FLINK_1_20, FLINK_2_3
from testbeds.flink.local.profile import Profile, TaskManager, check_backend


def test_the_memory_of_a_task_manager_is_divided_wholly() -> None:
    one = TaskManager("tm1", slots=4, memory_mb=1024)
    flinks = 1024 - 256 - 192
    assert one.managed_memory_mb == pytest.approx(0.4 * flinks)
    assert one.heap_mb == pytest.approx(0.6 * flinks - 32 - 64)
    sizes = {k: int(v[:-1]) for k, v in one.options().items() if v.endswith("b") and not k.endswith(".max")}
    total = sum(size for key, size in sizes.items() if key.startswith("taskmanager.memory."))
    assert total == pytest.approx(1024 * 2**20, abs=8)


def test_managed_memory_and_cores_can_be_stated() -> None:
    one = TaskManager("tm1", slots=2, memory_mb=900, managed_mb=64, cores=0.3)
    assert one.managed_memory_mb == 64
    assert "-Dsluice.cores=0.3" in one.jvm_flags()
    assert one.options()["taskmanager.cpu.cores"] == "0.3"


def test_too_little_for_the_heap_is_no_answer() -> None:
    with pytest.raises(Infeasible, match=r"TaskManager tm1 has 20 MiB of its 700 left.*needs 160.*544 for"):
        TaskManager("tm1", slots=1, memory_mb=700, managed_mb=136).options()


@pytest.mark.parametrize(
    "task_managers",
    [
        (),
        (TaskManager("a", 1, 600), TaskManager("a", 1, 600)),
        (TaskManager("a", 0, 600),),
        (TaskManager("a", 1, 600, cores=0.0),),
    ],
)
def test_a_cluster_that_is_none_is_refused(task_managers: tuple[TaskManager, ...]) -> None:
    with pytest.raises(InvalidInput):
        Profile(task_managers)


def test_profiles_are_compared_by_what_they_say() -> None:
    assert Profile((TaskManager("a", 1, 600),)) == Profile((TaskManager("a", 1, 600),))
    assert Profile((TaskManager("a", 1, 600),)) != Profile((TaskManager("a", 1, 601),))


def test_forst_needs_flink_2() -> None:
    check_backend("rocksdb", FLINK_1_20)
    check_backend("forst", FLINK_2_3)
    with pytest.raises(
        InvalidInput, match=r"needs Flink 2, but Flink 1\.20\.5 .*start Flink 2\.3, or keep state in 'rocksdb'"
    ):
        check_backend("forst", FLINK_1_20)
