"""Sluice's assets as OpenLineage datasets, for Airflow's OpenLineage provider where that is installed."""

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from openlineage.client.event_v2 import Dataset

SCHEME: Final = "x-sluice"


def dataset_of(asset: "Asset", lineage_context: Any = None) -> "Dataset":
    """The dataset of an asset: the artifact that its event names in `uri`, else the asset itself.

    The name of an artifact is that of its file, as OpenLineage names files: `file` and `/w/plans/q5/v000001.json`, or
    `s3://bucket` and `w/plans/q5/v000001.json`.
    """
    from openlineage.client.event_v2 import Dataset

    uri = (asset.extra or {}).get("uri")
    if uri is None:
        return Dataset(namespace=SCHEME, name=urlsplit(asset.uri).netloc)
    parts = urlsplit(str(uri))
    if parts.netloc:
        return Dataset(namespace=f"{parts.scheme}://{parts.netloc}", name=parts.path.lstrip("/"))
    return Dataset(namespace=parts.scheme or "file", name=parts.path)
