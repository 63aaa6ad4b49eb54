"""Measurements of all jobs wait for one another, since they share the testbed: in a pool of Airflow's."""

from typing import Any, Final

from airflow.listeners import hookimpl

POOL: Final = "sluice-measuring"


class PoolMaker:
    """A listener that makes the pool when a component of Airflow starts, since no task runs whose pool is not there."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        if type(component).__name__ == "Job":  # tasks start, too, and have no database
            make_pool()


def make_pool() -> None:
    """With one slot, as one testbed takes; a pool that is there stays as whoever operates Airflow has made it."""
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    def is_there() -> bool:
        with create_session() as session:
            return Pool.get_pool(POOL, session=session) is not None

    if is_there():
        return
    try:
        with create_session() as session:
            session.add(Pool(pool=POOL, slots=1, description="One slot for each testbed.", include_deferred=False))
    except Exception:
        if not is_there():  # else another component was faster
            raise
