"""Finding connections where Airflow runs: by its secrets back ends, which end with its database."""

from flink_client.access.connection import NamedConnection, connection_of
from models.errors import InvalidInput, SluiceError


def from_airflow(name: str) -> NamedConnection | None:
    """A connection of Airflow; None: it has none of that name. Airflow hides its secrets in the logs of tasks from then on.

    Raises:
        InvalidInput: its extra fields are no JSON.
        SluiceError: Airflow does not hand it out.
    """
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        found = Connection.get(name)
    except AirflowNotFoundException:
        return None
    except Exception as error:  # of any secrets back end; its message may hold what it has read
        raise SluiceError(
            f"Airflow does not hand out the connection {name} ({type(error).__name__}); check its secrets back end and the "
            f"right to read this connection"
        ) from None
    fields = ("conn_type", "host", "port", "schema", "login", "password", "extra")
    try:
        return connection_of(name, {field: getattr(found, field) for field in fields})
    except (ValueError, TypeError):
        # The cause is left out: it quotes what it could not read.
        raise InvalidInput(f"the extra fields of the connection {name} must be a JSON object; correct them") from None
