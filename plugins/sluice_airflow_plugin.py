"""Tells Airflow of what the DAGs need. Every component of Airflow loads this file, so it imports nothing heavy."""

from airflow.plugins_manager import AirflowPlugin

from sluice_airflow.measuring import PoolMaker


class SluiceAirflow(AirflowPlugin):
    """The pool that measurements wait in."""

    name = "sluice_airflow"
    listeners = [PoolMaker()]  # noqa: RUF012  (declared so in the base class)
