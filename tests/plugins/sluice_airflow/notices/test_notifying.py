"""Who hears a notice, by mail and by HTTP of servers on this machine, and what a wrong notifier does to others: nothing."""

import json
import logging
import socketserver
import threading
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from answering.hearing import POST, post, says
from answering.server import AnsweringServer
from sluice_airflow.notices.notifying import VARIABLE, notify

MAIL = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"


class Mailbox(socketserver.ThreadingTCPServer):
    """A server that takes mail (RFC 5321)."""

    daemon_threads = True

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Session)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class _Session(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            command = line[:4].upper()
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                mail = b""
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    mail += line
                self.server.mails.append(mail)
            self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")


@pytest.fixture
def posted() -> list[dict[str, str]]:
    return []


@pytest.fixture
def address(posted: list[dict[str, str]]) -> Iterator[str]:
    def take(_request: Any, body: bytes) -> tuple[int, object]:
        posted.append(json.loads(body))
        return 200, {}

    with AnsweringServer(take) as server:
        yield server.url


def test_each_listener_hears_the_kinds_and_jobs_that_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, posted: list[dict[str, str]]
) -> None:
    says(
        tmp_path, monkeypatch, post(address, kinds=["apply-failed"], jobs=["q5"]), post(address, kinds=["drift-found"])
    )
    notify("apply-failed", "q5", "a plan of q5 was not applied", "403")
    notify("apply-failed", "q7", "a plan of q7 was not applied", "403")
    notify("drift-found", "q7", "production of q7 differs", "join +30 %")
    notify("model-waiting", "q5", "a model waits", "models:/q5/2")
    assert posted == [
        {"text": "a plan of q5 was not applied: 403", "kind": "apply-failed"},
        {"text": "production of q7 differs: join +30 %", "kind": "drift-found"},
    ]


def test_a_mail_is_sent_by_airflows_own_notifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Mailbox() as mailbox:
        extra = {"disable_tls": True, "disable_ssl": True, "from_email": "sluice@example.com"}
        named = {"conn_type": "smtp", "host": "127.0.0.1", "port": mailbox.server_address[1], "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_MAIL", json.dumps(named))
        arguments = {
            "to": "ada@example.com",
            "smtp_conn_id": "mail",
            "subject": "Sluice: {{ notice.subject }}",
            "html_content": "<p>{{ notice.text | e }}</p>",
        }
        says(tmp_path, monkeypatch, {"notifier": MAIL, "arguments": arguments})
        notify("budget-spent", "q5", "q5 has spent its lateness budget", "<120%> of the records")
        mailbox.shutdown()
    (mail,) = map(message_from_bytes, mailbox.mails)
    assert (mail["Subject"], mail["To"]) == ("Sluice: q5 has spent its lateness budget", "ada@example.com")
    (part,) = [part for part in mail.walk() if part.get_content_type() == "text/html"]
    assert b"&lt;120%&gt; of the records" in part.get_payload(decode=True)


def test_a_wrong_notifier_or_file_is_logged_and_keeps_no_other_from_hearing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, posted: list[dict[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.ERROR)
    wrong = [
        {"notifier": "no.such.Notifier"},
        {"notifier": "pathlib.Path"},
        {"notifier": POST, "arguments": {"adress": "x"}},
        {"notifier": POST, "arguments": {"url": address, "text": "{{ notice.subject"}},
    ]
    says(tmp_path, monkeypatch, *wrong, post(address))
    notify("drift-found", "q5", "production of q5 differs", "why")
    assert [one["text"] for one in posted] == ["production of q5 differs: why"]
    assert sum("is not notified that production of q5 differs" in one for one in caplog.messages) == len(wrong)
    says(tmp_path, monkeypatch, {"notifier": POST, "kinds": ["all"]})
    notify("drift-found", "q5", "production of q5 differs", "why")
    assert any("no notifier is called, though production of q5 differs" in one for one in caplog.messages)
    monkeypatch.delenv(VARIABLE)
    notify("drift-found", "q5", "production of q5 differs", "why")
    assert len(posted) == 1
