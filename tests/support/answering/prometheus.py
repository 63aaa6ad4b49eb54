"""A fake Prometheus: answers instant queries, correctly or with the faults of a test."""

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from answering.server import AnsweringServer


class PrometheusServer(AnsweringServer):
    """Knows some series by the query that asks for them; `url` is where it listens. Close it, or use it as a context."""

    def __init__(self, port: int = 0) -> None:
        self.rates: dict[str, float] = {}
        """Query -> what it is answered with."""
        self.answer: tuple[int, bytes] | None = None
        """Status and body instead of an answer."""
        self.pause_s = 0.0
        self.drops: bytes | None = None
        """Sent again and again, as long as the client takes it."""
        self.queries: list[str] = []
        self.headers: dict[str, str] = {}
        super().__init__(self._serve, port)

    def _serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes] | None:
        self.headers = dict(handler.headers)
        time.sleep(self.pause_s)
        asked = urlsplit(handler.path)
        if self.drops is not None:
            handler.send_response(200)
            handler.end_headers()
            while self.drops is not None:
                handler.wfile.write(self.drops)
                time.sleep(0.01)
            return None
        query = parse_qs(asked.query).get("query", [""])[0]
        self.queries.append(query)
        return self.answer or self._result(asked.path, query)

    def _result(self, path: str, query: str) -> tuple[int, bytes]:
        if path != "/api/v1/query":
            return 404, b"404 page not found"
        series = [{"metric": {}, "value": [time.time(), repr(self.rates[query])]}] if query in self.rates else []
        answer: dict[str, Any] = {"status": "success", "data": {"resultType": "vector", "result": series}}
        return 200, json.dumps(answer).encode()

    def close(self) -> None:
        self.drops = None
        super().close()
