"""The server of the page: for this machine alone, and for those who have its address.

It listens on 127.0.0.1. Every path begins with a token that is drawn when the server starts, so another user of the machine, who could
reach the port, cannot guess the address. A request is refused if its Host is not this server (a name of another site that leads here: DNS
rebinding) or its Origin is another site. The page is one answer, with its script and its style; its policy forbids the browser to load
anything, to run another script, to make a script of a text, and to send anything elsewhere.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socketserver
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

__all__ = ["Site", "serve"]

_HOST = "127.0.0.1"
_LONGEST = 4_000_000  # bytes of a request
_HEADERS = {
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Site:
    """What is served.

    Attributes
    ----------
    page : str
        HTML.
    policy : str
        The content security policy of the page.
    actions : mapping of functions
        By name: takes what a page sent, as plain data, and yields plain data, each of which is sent as one line of JSON. A caller that is
        gone, or has sent a later request, no longer takes any.
    """

    page: str
    policy: str
    actions: dict[str, Callable[[Any], Iterable[Any]]]


def serve(site: Site, *, port: int = 0, started: Callable[[str], object]) -> None:
    """Serve a page until the program is interrupted.

    Parameters
    ----------
    site : Site
    port : int
        0 chooses one that is free.
    started : function
        Called with the address when the server listens.

    Raises
    ------
    OSError
        The port is taken.
    """
    token = secrets.token_urlsafe(24)
    with _Server((_HOST, port), _handler(site, token)) as server:
        started(f"http://{_HOST}:{server.server_address[1]}/{token}/")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = sys.platform != "win32"
    daemon_threads = True  # an engine that computes cannot be stopped, and ends with the program
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a tab that was closed while it was answered; any other error is a defect."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(site: Site, token: str) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers requests."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 60  # seconds in which a request must arrive
        server_version, sys_version = "fairopt", ""

        def do_GET(self) -> None:
            """Give the page."""
            if self._is_foreign():
                self._refuse()
            elif self._asked_for() == f"/{token}/":
                self._give(HTTPStatus.OK, "text/html; charset=utf-8", site.page.encode(errors="replace"))
            else:
                self._give(HTTPStatus.NOT_FOUND, "text/plain", b"there is no such page\n")

        def do_POST(self) -> None:
            """Carry out an action, line by line as its results come."""
            action = site.actions.get(self._asked_for().removeprefix(f"/{token}/"))
            if self._is_foreign():
                self._refuse()
            elif action is None:
                self._give(HTTPStatus.NOT_FOUND, "text/plain", b"there is no such action\n")
            else:
                try:
                    asked = self._sent()
                except ValueError:
                    self._give(HTTPStatus.BAD_REQUEST, "text/plain", b"expected JSON\n")
                    return
                self._begin(HTTPStatus.OK, "application/x-ndjson")
                for found in action(asked):
                    self.wfile.write(json.dumps(found).encode() + b"\n")
                    self.wfile.flush()

        def _asked_for(self) -> str:
            """Return the path as it was sent; ``path`` is a tidied one."""
            return self.requestline.split(" ")[1]

        def _sent(self) -> Any:
            size = int(self.headers.get("Content-Length", ""))
            if not 0 <= size <= _LONGEST or self.headers.get_content_type() != "application/json":
                raise ValueError
            return json.loads(self.rfile.read(size))

        def _is_foreign(self) -> bool:
            """Is it without the token, by another name of this machine, or from another site?"""
            hosts = (f"{_HOST}:{self.server.server_address[1]}", f"localhost:{self.server.server_address[1]}")  # type: ignore[index]
            start, _, rest = self._asked_for().partition("/")
            given = "" if start else rest.partition("/")[0]
            named, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
            own = hmac.compare_digest(given.encode(), token.encode()) and len(named) == 1 and named[0] in hosts
            return not (own and all(origin.removeprefix("http://") in hosts for origin in origins))

        def _refuse(self) -> None:
            self.close_connection = True
            self._give(HTTPStatus.FORBIDDEN, "text/plain", b"fairopt explore: open the address that it printed\n")

        def _give(self, status: HTTPStatus, kind: str, text: bytes) -> None:
            self._begin(status, kind, {"Content-Length": str(len(text))})
            if self.command != "HEAD":
                self.wfile.write(text)

        def _begin(self, status: HTTPStatus, kind: str, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Security-Policy": site.policy, **_HEADERS, **(more or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """Refuse what is no request, or has a method that there is not."""
            self.command = getattr(self, "command", None) or ""
            self.close_connection = True
            self._give(HTTPStatus.FORBIDDEN, "text/plain", b"fairopt explore: open the address that it printed\n")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a request is no news, nor is one that is refused."""

    return Handler
