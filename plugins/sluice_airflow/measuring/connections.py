"""Connections of Airflow for a process that Airflow does not supervise."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.run import PipelineRun


def connection_variables(request_uri: str) -> dict[str, str]:
    """The environment variables that hold the connections a run measures through; none unless it names some.

    Raises:
        InvalidInput: there is no such connection.
    """
    from flink_client.access.connection import connection_text
    from flink_client.access.lookup import find_connection, variable_of
    from pipelines.run import PipelineRun

    names = _names(PipelineRun.at(request_uri))
    return {variable_of(name): connection_text(find_connection(name)) for name in sorted(names)}


def _names(run: "PipelineRun") -> set[str]:
    from flink_client.address import connection_name
    from pipelines.measuring.flink import flink_address

    if run.request.testbed != "flink" or (address := flink_address(run.request.flink, run.cluster)) is None:
        return set()
    named = (connection_name(url) for url in (address.rest_url, address.prometheus_url) if url is not None)
    return {name for name in named if name is not None}
