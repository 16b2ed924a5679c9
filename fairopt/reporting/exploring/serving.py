"""The server of the page: for this machine alone, and for those who have its address.

It listens on 127.0.0.1. Every path begins with a token that is drawn when the server starts, so another user of the machine, who could
reach the port, cannot guess the address. A request is refused, and so is a websocket, if its Host is not this server (a name of another
site that leads here: DNS rebinding) or its Origin is another site. All that the page loads comes from here, and its policy forbids the
browser to load anything else, to run a script that is not from here or without the nonce of the server, and to make a script of a text.
Styles cannot be listed: Bokeh writes them into elements and their attributes.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Any

import panel as pn
from panel.io.server import get_server
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import OutputTransform, RequestHandler
from tornado.websocket import WebSocketClosedError

__all__ = ["serve"]

_HOST = "127.0.0.1"
_NONCE = secrets.token_urlsafe(16)
_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"script-src 'self' 'nonce-{_NONCE}'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def serve(page: Callable[[str], Any], *, port: int = 0, started: Callable[[str], object]) -> None:
    """Serve a page until the program is interrupted.

    Parameters
    ----------
    page : function
        Returns the page of a browser tab, whose scripts have a nonce.
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
    pn.config.notifications = False
    for quiet in ("tornado.access", "bokeh", "panel"):  # a refused request is no news, nor is a tab that was closed
        logging.getLogger(quiet).setLevel(logging.ERROR)
    server = get_server({"/": lambda: page(_NONCE)}, port=port, address=_HOST, prefix=token, show=False, location=False)
    application, hosts = server._tornado, (f"{_HOST}:{server.port}", f"localhost:{server.port}")
    application.websocket_origins.update(hosts)
    application.default_router.rules.insert(0, Rule(_Foreign(token, hosts), _Refusal))
    application.transforms.append(_Guarded)
    server.start()
    server.io_loop.add_callback(lambda: asyncio.get_running_loop().set_exception_handler(_complain))
    server.io_loop.add_callback(started, f"http://{_HOST}:{server.port}/{token}/")
    try:
        server.io_loop.start()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


def _complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that nobody handled, but not that of a message to a tab that was closed meanwhile."""
    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)


class _Foreign(Matcher):
    """Matches requests that are not of the page: without the token, by another name of this machine, or from another site."""

    def __init__(self, token: str, hosts: tuple[str, ...]) -> None:
        self._token, self._hosts = token, hosts

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Return nothing if the request is let through."""
        given = request.path.split("/")[1]
        origins = request.headers.get_list("Origin")
        own = (
            hmac.compare_digest(given.encode(), self._token.encode())
            and request.host in self._hosts
            and all(origin.removeprefix("http://") in self._hosts for origin in origins)
        )
        return None if own else {}


class _Refusal(RequestHandler):
    """Says no more than that it refuses."""

    def prepare(self) -> None:
        """Refuse every method."""
        self.set_status(403)
        self.finish("fairopt explore: open the address that it printed\n")


class _Guarded(OutputTransform):
    """Gives every answer the policy of the page."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Add the headers."""
        for name, value in _HEADERS.items():
            headers[name] = value
        return status_code, headers, chunk
