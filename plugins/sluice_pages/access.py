"""Who may see plans: whoever is logged in to Airflow and may see the DAG that makes them.

Airflow does not authenticate what plugins mount, so this is Airflow's own check, as its own routes have it: the token
comes from the `Authorization` header or from the cookie of the login. The DAG is named here, for otherwise the check
would take one from the query.
"""

from typing import Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.models.dag import DagModel
from fastapi import Request

PLANNING_DAG: Final = "capacity_plan"

may_see_plans: Final = requires_access_dag("GET", param_dag_id=PLANNING_DAG)


def may_see(user: BaseUser, dag_id: str, entity: DagAccessEntity) -> bool:
    """Whether a user may see what belongs to a DAG: its runs, or what it asks people."""
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return get_auth_manager().is_authorized_dag(method="GET", access_entity=entity, details=details, user=user)


def login_address(request: Request) -> str:
    """Airflow's login page, which leads back to what was asked for."""
    query = f"?{request.url.query}" if request.url.query else ""
    return get_auth_manager().get_url_login(next_url=f"{request.url.path}{query}")
