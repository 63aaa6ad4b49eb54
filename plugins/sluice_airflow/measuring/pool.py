"""The pool that measurements run in: jobs share the testbed, so they are measured one after the other.

A task that waits for its measurement in the triggerer keeps its slot of the pool, since the testbed is in use.
"""

from typing import Any, Final

from airflow.listeners import hookimpl

POOL: Final = "sluice-measuring"


class PoolMaker:
    """A listener that makes the pool when a component of Airflow starts; without the pool measuring tasks would not run."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        if type(component).__name__ == "Job":  # not a task: tasks have no database
            make_pool()


def make_pool() -> None:
    """Make the pool with one slot, for one testbed. An existing pool keeps the slots its operator has set, but counts deferred
    tasks from now on.
    """
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    def exists() -> bool:
        with create_session() as session:
            pool = Pool.get_pool(POOL, session=session)
            if pool is not None and not pool.include_deferred:
                pool.include_deferred = True
            return pool is not None

    if exists():
        return
    try:
        with create_session() as session:
            session.add(Pool(pool=POOL, slots=1, description="One slot for each testbed.", include_deferred=True))
    except Exception:
        if not exists():  # another component did not make it meanwhile
            raise
