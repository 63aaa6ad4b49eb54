"""Somebody who hears notices: a notifier that posts them to a server of this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from airflow.sdk import BaseNotifier

from answering.server import AnsweringServer
from sluice_airflow.notices.notifying import VARIABLE


class PostingNotifier(BaseNotifier):
    """Sends a JSON document to an address."""

    template_fields = ("text",)

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self.url, self.text = url, text

    def notify(self, context: Any) -> None:
        httpx.post(self.url, json={"text": self.text, "kind": context["notice"]["kind"]}).raise_for_status()


POST = "answering.hearing.PostingNotifier"


def post(url: str, **rules: Any) -> dict[str, Any]:
    """An entry of the file of listeners."""
    return {"notifier": POST, "arguments": {"url": url, "text": "{{ notice.subject }}: {{ notice.text }}"}, **rules}


def says(folder: Path, variables: pytest.MonkeyPatch, *listeners: dict[str, Any]) -> None:
    """Write that file."""
    file = folder / "notifiers.yaml"
    file.write_text(yaml.safe_dump({"listeners": list(listeners)}))
    variables.setenv(VARIABLE, str(file))


@contextmanager
def heard(folder: Path, variables: pytest.MonkeyPatch) -> Iterator[list[dict[str, str]]]:
    """All notices that are sent meanwhile: kind, and subject and text."""
    found: list[dict[str, str]] = []

    def take(_request: Any, body: bytes) -> tuple[int, object]:
        found.append(json.loads(body))
        return 200, {}

    with AnsweringServer(take) as server:
        says(folder, variables, post(server.url))
        yield found
    variables.delenv(VARIABLE)
