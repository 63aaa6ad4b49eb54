"""Settings of Kubernetes' client: from kubectl's kubeconfig, the pod's service account, or a connection."""

import os
from pathlib import Path
from typing import Any

from kubernetes import client, config

from flink_client.access.credentials import UserPassword
from flink_client.access.header import authorization_of
from flink_client.access.server import ServerAccess, server_access
from flink_client.access.trust import context_of
from flink_client.address import connection_name
from models.errors import InvalidInput


def settings_for(context: str | None) -> tuple[Any, ServerAccess]:
    """Settings of the client, and how its server is reached, for messages.

    Args:
        context: of the kubeconfig, or `connection:NAME`; None: the current one or, without a kubeconfig, the pod's service
            account.

    Raises:
        InvalidInput: there is no such context or connection, it cannot be used, or there are no credentials at all.
    """
    settings = client.Configuration()
    if context is not None and connection_name(context) is not None:
        access = server_access(context)
        _use(settings, access)
        return settings, access
    kubeconfig = os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        if context is None and "KUBERNETES_SERVICE_HOST" in os.environ and not _exists(kubeconfig):
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                kubeconfig, context=context, client_configuration=settings, persist_config=False
            )
    except config.ConfigException as error:
        raise InvalidInput(
            f"no credentials for Kubernetes: {error!s:.300}; `kubectl config get-contexts` lists the contexts, KUBECONFIG "
            "names the file"
        ) from error
    return settings, ServerAccess(str(settings.host))


def _use(settings: Any, access: ServerAccess) -> None:
    if isinstance(access.credentials, UserPassword):
        raise InvalidInput(
            f"Kubernetes takes no password, but the connection {access.connection} has a login and one; put a token into its "
            "password field and empty the login, or name a client certificate"
        )
    identity = access.identity
    if identity is not None and identity.password is not None:
        raise InvalidInput(
            f"Kubernetes' client takes a key without a password; name one as 'client_key' of the connection "
            f"{access.connection}, and leave 'client_key_password' away"
        )
    context_of(access)  # the client would say of such a file that the server failed
    settings.host = access.url
    if access.authority is not None:
        settings.ssl_ca_cert = str(access.authority)
    if identity is not None:
        settings.cert_file, settings.key_file = str(identity.certificate), str(identity.key or identity.certificate)
    if (header := authorization_of(access)) is not None:

        def refresh(of: Any) -> None:
            of.api_key["authorization"] = header()

        refresh(settings)
        settings.refresh_api_key_hook = refresh


def _exists(kubeconfig: str) -> bool:
    return any(Path(path).expanduser().exists() for path in kubeconfig.split(os.pathsep))
