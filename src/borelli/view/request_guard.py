"""Guard of the browser viewer: only its own page, on this computer or with its token, may read the data.

A web page elsewhere can send requests to servers on this computer. By DNS rebinding it makes its own name resolve to
this computer, so that the browser treats the viewer as part of the page; a websocket may be opened from any page. Hence
every request must name this computer in its Host header, and every websocket must come from the viewer's own page, as
its Origin header states. A viewer for other computers also requires a token, which its page stores as a cookie.
"""

from __future__ import annotations

import http.client
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Names of this computer that no other computer can use."""
FOREIGN_HOST = "viewer.invalid"
"""Name of no computer (RFC 2606), for a request that the guard must refuse."""
CHECK_TIMEOUT = 10.0
"""Time within which the server must answer that request [s]."""

_PATCHING = threading.Lock()


@dataclass(frozen=True)
class RequestGuard:
    """Rules for requests to a viewer that serves `host`; a token is required unless that is this computer only."""

    host: str
    token: str | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", None if self.host in LOCAL else secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Name of the cookie with the token; viewers on several ports of a host share its cookies."""
        return f"borelli_{sha256((self.token or '').encode()).hexdigest()[:12]}"

    def refusal(self, path: str, headers: Any) -> str:
        """Return why a request is refused, or "" if it is allowed.

        Args:
            path: Path and query of the request.
            headers: Its headers, as of `websockets.Headers`.
        """
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or not self._names_this_computer(hosts[0]):
            return "The Host header does not name this computer."
        upgrade = any(value.lower() == "websocket" for value in headers.get_all("Upgrade"))
        if (origins or upgrade) and [origin.lower() for origin in origins] != [f"http://{hosts[0].lower()}"]:
            return "The Origin header is not that of the viewer's own page."
        if self.token is not None and not self._has_token(path, headers):
            return "The token is missing or wrong. Open the address that borelli printed."
        return ""

    def guarded(self, process_request: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return a function that answers requests as `process_request` does, and refuses those that are not allowed."""

        def process(connection: Any, request: Any) -> Any:
            refusal = self.refusal(request.path, request.headers)
            if refusal:
                return connection.respond(HTTPStatus.FORBIDDEN, f"{refusal}\n")
            response = process_request(connection, request)
            if response is not None and self.token is not None:
                response.headers["Set-Cookie"] = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            return response

        return process

    def _names_this_computer(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in LOCAL:
            return True
        # a rebound request has a DNS name, never an address
        return self.token is not None and (
            name in (self.host.lower(), socket.gethostname().lower()) or _is_address(name)
        )

    def _has_token(self, path: str, headers: Any) -> bool:
        given = parse_qs(urlsplit(path).query).get("token", [])
        for line in headers.get_all("Cookie"):
            try:
                found = SimpleCookie(line).get(self.cookie)
            except CookieError:
                continue
            given += [found.value] if found is not None else []
        expected = (self.token or "").encode()
        return any(secrets.compare_digest(one.encode(), expected) for one in given)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@contextmanager
def guarding(guard: RequestGuard) -> Iterator[None]:
    """Have servers of websockets that start meanwhile check their requests: viser has no option for that."""
    from websockets.asyncio import server

    original = server.serve

    def serve(*arguments: Any, process_request: Callable[[Any, Any], Any], **options: Any) -> Any:
        return original(*arguments, process_request=guard.guarded(process_request), **options)

    with _PATCHING:
        server.serve = serve  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            server.serve = original  # type: ignore[misc]


def refuses_foreign_host(host: str, port: int) -> bool:
    """Return whether the server at an address refuses a request with a Host header of another computer."""
    connection = http.client.HTTPConnection(host, port, timeout=CHECK_TIMEOUT)
    try:
        connection.request("GET", "/", headers={"Host": FOREIGN_HOST})
        return connection.getresponse().status == HTTPStatus.FORBIDDEN
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
