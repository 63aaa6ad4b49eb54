"""Access to the plan pages: users of Airflow who may see the DAG that makes plans.

Airflow does not authenticate what plugins mount, so these are the checks of its own routes: the token comes from the
`Authorization` header or from the login cookie. The DAG is fixed here; otherwise the check would read it from the query.
"""

from typing import Annotated, Final
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user, requires_access_dag
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials

PLANNING_DAG: Final = "capacity_plan"

may_see_plans: Final = requires_access_dag("GET", param_dag_id=PLANNING_DAG)
_may_start_replans: Final = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id="replan")
_may_start_applications: Final = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id="apply_plan")
_may_start_autopilots: Final = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id="autopilot_jobs")


async def logged_in(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer_scheme)]
) -> None:
    """Answer every token that is not valid with 401, which leads a browser to the login.

    Airflow answers 401 if a token has expired, but 403 if it was revoked or signed with an earlier secret.
    """
    try:
        await get_user(request, None, credentials)
    except HTTPException as error:
        raise HTTPException(401, error.detail) from None


def may_change_plans(request: Request, _: Annotated[None, Depends(_may_start_replans)]) -> None:
    """Refuse users who may not start replans, and cross-site requests."""
    _refuse_other_sites(request, "A job is replanned, rolled back, pinned and unpinned")


def may_apply_plans(request: Request, _: Annotated[None, Depends(_may_start_applications)]) -> None:
    """Refuse users who may not start runs of the applying DAG, and cross-site requests."""
    _refuse_other_sites(request, "A plan is applied")


def may_switch_autopilots(request: Request, _: Annotated[None, Depends(_may_start_autopilots)]) -> None:
    """Refuse users who may not start runs of the autopilots' DAG, and cross-site requests."""
    _refuse_other_sites(request, "An autopilot is stopped and resumed")


def _refuse_other_sites(request: Request, what: str) -> None:
    host = request.headers.get("x-forwarded-host") or request.headers.get("host")
    # Browsers send Sec-Fetch-Site, older ones Origin. Whoever sends neither is a program, which no page can misuse.
    origin = request.headers.get("origin")
    same = "same-origin" if origin is None or urlsplit(origin).netloc == host else "cross-site"
    if request.headers.get("sec-fetch-site", same) != "same-origin":
        raise HTTPException(403, f"{what} from Sluice's own pages, not from another site.")


def may_see(user: BaseUser, dag_id: str, entity: DagAccessEntity) -> bool:
    """Whether a user may see an entity of a DAG: its runs, or its questions to people."""
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return get_auth_manager().is_authorized_dag(method="GET", access_entity=entity, details=details, user=user)


def may_start(user: BaseUser, dag_id: str) -> bool:
    """Whether a user may start runs of a DAG."""
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
    )


def login_address(request: Request) -> str:
    """Airflow's login page, which leads back to the requested page."""
    query = f"?{request.url.query}" if request.url.query else ""
    return get_auth_manager().get_url_login(next_url=f"{request.url.path}{query}")
