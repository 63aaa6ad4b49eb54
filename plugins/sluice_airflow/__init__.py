"""Code shared by the DAGs: assets, triggers, retries, turns and progress, connections, and the embedded Airflow of `make plan`.

Every process that loads any of it finds the connections that jobs name by Airflow's secrets back ends.
"""

from flink_client.access.lookup import look_up_first
from sluice_airflow.connections.lookup import from_airflow

look_up_first(from_airflow)
