"""The Kubernetes API server, as far as `FlinkDeployment`s: reading one, and patching it under optimistic concurrency.

Credentials are those of kubectl: a context of the kubeconfig, or inside a cluster the pod's service account. Or those of a
connection that is named.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from flink_client.access.trust import tls_fault
from flink_client.kubernetes.credentials import settings_for
from flink_client.kubernetes.refusals import Conflict, NotPermitted
from flink_client.kubernetes.resource import FlinkDeployment, read_resource
from models.closing import Closing
from models.errors import InvalidInput, SluiceError

GROUP: Final = "flink.apache.org"
VERSION: Final = "v1beta1"
PLURAL: Final = "flinkdeployments"
MANAGER: Final = "sluice"
"""Owner of the fields that it writes, in `metadata.managedFields`."""
_MERGE_PATCH: Final = "application/merge-patch+json"
_TIMEOUT_S: Final = 15.0
_LONGEST: Final = 400
_ANONYMOUS: Final = "system:anonymous"
"""The account of a request without credentials."""
_TRUST: Final = "name the file of its authority (PEM) as certificate-authority of the cluster in the kubeconfig"
_QUOTED: Final = re.compile(r'(Invalid value|Unsupported value): "(?:[^"\\]|\\.)*"')


class KubernetesApi(Closing):
    """One API server; close it, or use it as a context."""

    def __init__(self, context: str | None = None) -> None:
        """
        Args:
            context: of the kubeconfig, or `connection:NAME`; None: the current one or, without a kubeconfig, the pod's
                service account.

        Raises:
            InvalidInput: there is no such context or connection, it cannot be used, or there are no credentials at all.
        """
        settings, self._access = settings_for(context)
        settings.retries = urllib3.Retry(total=0)  # nor are redirects followed, which could carry the token elsewhere
        self.url = str(settings.host)
        self._client = client.ApiClient(settings)
        self._objects = client.CustomObjectsApi(self._client)

    def close(self) -> None:
        self._client.close()  # type: ignore[no-untyped-call]

    def read(self, namespace: str, name: str) -> FlinkDeployment:
        """The resource as it is now.

        Raises:
            InvalidInput: there is none.
            NotPermitted: by the credentials, their rights or the certificate.
            SluiceError: the API server refused, or does not answer.
        """
        return self._asked(
            "get",
            namespace,
            name,
            lambda: self._objects.get_namespaced_custom_object(
                GROUP, VERSION, namespace, PLURAL, name, _request_timeout=_TIMEOUT_S
            ),
        )

    def patch(
        self,
        resource: FlinkDeployment,
        spec: Mapping[str, Any],
        annotations: Mapping[str, str | None],
        *,
        dry_run: bool = False,
    ) -> FlinkDeployment:
        """Merge changes into the resource, if it is still as it was read; else nothing is changed.

        Args:
            spec: a merge patch of the spec; None removes a field.
            annotations: None removes one.
            dry_run: the API server validates and admits the change, and does not store it.

        Raises:
            Conflict: the resource was changed meanwhile.
            InvalidInput: it is gone, or the operator's definition does not take a field.
            NotPermitted: by the credentials, their rights or the certificate.
            SluiceError: the API server refused, or does not answer.
        """
        body = {
            "metadata": {"resourceVersion": resource.resource_version, "annotations": dict(annotations)},
            "spec": dict(spec),
        }
        return self._asked(
            "patch",
            resource.namespace,
            resource.name,
            lambda: self._objects.patch_namespaced_custom_object(
                GROUP,
                VERSION,
                resource.namespace,
                PLURAL,
                resource.name,
                body,
                dry_run="All" if dry_run else None,
                field_manager=MANAGER,
                field_validation="Strict",
                _content_type=_MERGE_PATCH,
                _request_timeout=_TIMEOUT_S,
            ),
        )

    def version(self) -> str | None:
        """Version of the API server, for example v1.33.1; None where it lets the account in, but not read that.

        Raises:
            SluiceError: it refused, or does not answer.
        """
        try:
            answer: Any = client.VersionApi(self._client).get_code(_request_timeout=_TIMEOUT_S)
        except ApiException as error:
            if error.status == 403 and _ANONYMOUS not in self._said(error):
                return None
            raise self._not_let_in(error, self._said(error)) or SluiceError(
                f"{self.url} does not answer as an API server does ({error.status}: {self._said(error)}); check the address"
            ) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._silent(error) from None
        except (ValueError, TypeError):
            raise SluiceError(f"{self.url} does not answer as an API server does; check the address") from None
        return str(answer.git_version)

    def _asked(self, verb: str, namespace: str, name: str, ask: Callable[[], Any]) -> FlinkDeployment:
        try:
            return read_resource(ask())
        except ApiException as error:
            raise self._refusal(error, verb, namespace, name) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._silent(error, f"; nothing is known of {namespace}/{name}") from error

    def _silent(self, error: Exception, more: str = "") -> SluiceError:
        fault = tls_fault(error, self._access, None if self._access.connection else _TRUST)
        if fault is not None:
            return NotPermitted(fault)
        return SluiceError(f"the API server {self.url} does not answer ({self._hidden(error)}){more}")

    def _hidden(self, error: Exception) -> str:
        return self._access.hidden(str(error))[:200]

    def _said(self, error: ApiException) -> str:
        return self._access.hidden(_message(error))

    def _not_let_in(self, error: ApiException, said: str) -> SluiceError | None:
        if error.status != 401:
            return None
        fix = "renew the token or the certificate"
        if self._access.connection is not None:
            fix = self._access.credentials.refused
        return NotPermitted(f"{self._access.shown} does not accept the credentials (401: {said}); {fix}")

    def _refusal(self, error: ApiException, verb: str, namespace: str, name: str) -> SluiceError:
        """One sentence for what the API server said; each of these answers means that nothing was changed."""
        what, said, url = f"FlinkDeployment {namespace}/{name}", self._said(error), self.url
        if (no_access := self._not_let_in(error, said)) is not None:
            return no_access
        if error.status == 403 and "admission webhook" in said:
            return InvalidInput(f"the operator does not admit the change of {what} ({said}); nothing was changed")
        if error.status == 403:
            return NotPermitted(
                f"the right to {verb} {PLURAL}.{GROUP} in namespace {namespace} is missing (403: {said}); bind the Role of "
                "docker/kubernetes/role.yaml to this account"
            )
        if error.status == 404 and name in said:
            return InvalidInput(f"there is no {what} on {url}; `kubectl get flinkdeployments -A` lists them")
        if error.status == 404:
            return InvalidInput(
                f"{url} knows no FlinkDeployment ({VERSION}); install the Flink Kubernetes operator there"
            )
        if error.status == 409:
            return Conflict(
                f"{what} was changed by somebody else meanwhile, so nothing was written; apply the plan again"
            )
        if error.status in (400, 422):
            return InvalidInput(f"{what} would not be valid ({error.status}: {said}); nothing was changed")
        return SluiceError(f"{url} refused to {verb} {what} ({error.status}: {said})")


def _message(error: ApiException) -> str:
    """The `message` of Kubernetes' Status without the values that it quotes, which may be the whole resource, with secrets.

    Other bodies, as of a proxy, are shortened.
    """
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    try:
        said = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        said = body or error.reason or "no reason was given"
    return _QUOTED.sub(r"\1", " ".join(str(said).split()))[:_LONGEST]
