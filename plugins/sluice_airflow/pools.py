"""The pools of tasks that must not take all that Airflow has.

Measurements: jobs share the testbed, so they are measured one after the other. A task that waits for its measurement in the
triggerer keeps its slot of the pool, since the testbed is in use. Replans: many may be due at once, and other DAGs need slots.
"""

from typing import Any, Final

from airflow.listeners import hookimpl

MEASURING: Final = "sluice-measuring"
REPLANNING: Final = "sluice-replanning"
_SLOTS: Final = {MEASURING: 1, REPLANNING: 2}
_DESCRIPTIONS: Final = {
    MEASURING: "One slot for each testbed.",
    REPLANNING: "Replans at a time; half of the slots of a small Airflow.",
}


class PoolMaker:
    """A listener that makes the pools when a component of Airflow starts; without them their tasks would not run."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        if type(component).__name__ == "Job":  # not a task: tasks have no database
            for pool in _SLOTS:
                make_pool(pool)


def make_pool(name: str) -> None:
    """Make a pool. An existing one keeps its operator's slots; that of measurements counts deferred tasks from now on."""
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    deferred = name == MEASURING

    def exists() -> bool:
        with create_session() as session:
            pool = Pool.get_pool(name, session=session)
            if pool is not None and deferred and not pool.include_deferred:
                pool.include_deferred = True
            return pool is not None

    if exists():
        return
    try:
        with create_session() as session:
            made = Pool(pool=name, slots=_SLOTS[name], description=_DESCRIPTIONS[name], include_deferred=deferred)
            session.add(made)
    except Exception:
        if not exists():  # another component did not make it meanwhile
            raise
