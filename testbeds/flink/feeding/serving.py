"""Serves recorded files to TaskManagers that cannot read this machine's disk."""

import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfileobj
from typing import Final
from urllib.parse import quote

_JOIN_S: Final = 5.0


class FileServer:
    """Serves only the files added, until it is closed; addresses cannot be guessed."""

    def __init__(self, host: str) -> None:
        """
        Args:
            host: address to listen on; the TaskManagers must be able to reach it.
        """
        files: dict[str, Path] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = files.get(self.path)
                if path is None:
                    self.send_error(HTTPStatus.NOT_FOUND)
                    return
                with path.open("rb") as content:
                    self.send_response(HTTPStatus.OK)
                    self.send_header("Content-Length", str(path.stat().st_size))
                    self.end_headers()
                    copyfileobj(content, self.wfile)

            def log_message(self, format: str, *arguments: object) -> None:
                """Requests are not logged."""

        self._files = files
        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="recordings", daemon=True)
        self._thread.start()

    def url(self, file: Path) -> str:
        """Serve a file; return its address."""
        path = f"/{secrets.token_urlsafe(16)}/{quote(file.name)}"
        known = next((served for served, there in self._files.items() if there == file), path)
        self._files[known] = file
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}{known}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_JOIN_S)
