import pytest

from models.errors import Infeasible, InvalidInput
from testbeds.flink.profile import Profile, TaskManager


def test_the_memory_of_a_task_manager_is_divided_wholly() -> None:
    one = TaskManager("tm1", slots=4, memory_mb=1024)
    assert one.managed_memory_mb == pytest.approx(0.4 * (1024 - 224))
    assert one.heap_mb == pytest.approx(1024 - 224 - 32 - 64 - 320)
    sizes = {k: int(v[:-1]) for k, v in one.options().items() if v.endswith("b") and not k.endswith(".max")}
    total = sum(size for key, size in sizes.items() if key.startswith("taskmanager.memory."))
    assert total == pytest.approx(1024 * 2**20, abs=8)


def test_managed_memory_and_cores_can_be_stated() -> None:
    one = TaskManager("tm1", slots=2, memory_mb=600, managed_mb=64, cores=0.3)
    assert one.managed_memory_mb == 64
    assert "-Dsluice.cores=0.3" in one.jvm_flags()
    assert one.options()["taskmanager.cpu.cores"] == "0.3"


def test_too_little_for_the_heap_is_no_answer() -> None:
    with pytest.raises(Infeasible, match=r"TaskManager tm1 has 34 MiB of its 450 left.*needs 160"):
        TaskManager("tm1", slots=1, memory_mb=450, managed_mb=96).options()


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
