"""Registers the DAGs' needs with Airflow. Every component of Airflow loads this file, so it imports nothing heavy."""

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from sluice_airflow.pools import PoolMaker
from sluice_airflow.standing.sqlite import OneWriteAtATime

_ON_SQLITE = conf.get_mandatory_value("database", "sql_alchemy_conn").startswith("sqlite")


class SluiceAirflow(AirflowPlugin):
    """Makes the pools; on SQLite, lets writing requests take turns."""

    name = "sluice_airflow"
    listeners = [PoolMaker()]  # noqa: RUF012  (declared so in the base class)
    fastapi_root_middlewares = [{"middleware": OneWriteAtATime, "name": "one write at a time"}] if _ON_SQLITE else []
