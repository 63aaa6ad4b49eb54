"""An HTTP server for tests: a function says what it answers."""

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from models.closing import Closing

Answer = Callable[[BaseHTTPRequestHandler, bytes], tuple[int, object] | None]
"""Request and its body -> status and content: bytes or text as they are, all else as JSON; None where it answered itself."""


class AnsweringServer(Closing):
    """Listens on this machine from the start, at `url`, until it is closed."""

    def __init__(self, answer: Answer, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections are kept, as Flink and Kubernetes do
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                connections.add(self.connection)

            def finish(self) -> None:
                connections.discard(self.connection)
                with suppress(OSError):
                    super().finish()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                kept, self.close_connection = self.close_connection, True
                with suppress(OSError):  # who asked may not have waited
                    if (answered := answer(self, body)) is not None:
                        send(self, *answered)
                        self.close_connection = kept

            do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = _answer

            def log_message(self, *_: object) -> None:
                pass

        connections = self._connections = set[socket.socket]()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def send(request: BaseHTTPRequestHandler, status: int, content: object) -> None:
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    request.send_response(status)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)
