"""A fake Prometheus: answers instant queries, correctly or with the faults of a test."""

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


class PrometheusServer:
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
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.headers = dict(self.headers)
                time.sleep(server.pause_s)
                with suppress(OSError):  # who asked may not have waited
                    server._serve(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        asked = urlsplit(handler.path)
        if self.drops is not None:
            handler.send_response(200)
            handler.end_headers()
            while self.drops is not None:
                handler.wfile.write(self.drops)
                time.sleep(0.01)
            return
        query = parse_qs(asked.query).get("query", [""])[0]
        self.queries.append(query)
        status, body = self.answer or self._result(asked.path, query)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _result(self, path: str, query: str) -> tuple[int, bytes]:
        if path != "/api/v1/query":
            return 404, b"404 page not found"
        series = [{"metric": {}, "value": [time.time(), repr(self.rates[query])]}] if query in self.rates else []
        answer: dict[str, Any] = {"status": "success", "data": {"resultType": "vector", "result": series}}
        return 200, json.dumps(answer).encode()

    def close(self) -> None:
        self.drops = None
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
