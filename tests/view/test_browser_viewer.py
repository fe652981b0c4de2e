"""The browser viewer serves its own page only: real requests, over HTTP and websockets."""

import http.client
import socket
from contextlib import closing
from http import HTTPStatus

import pytest

from borelli.errors import SettingsError
from borelli.people.human import human
from borelli.view import browser_viewer
from borelli.view.browser_viewer import show
from borelli.view.request_guard import RequestGuard, refuses_foreign_host

TIMEOUT = 20.0


@pytest.fixture(scope="module")
def local():
    """A viewer for this computer."""
    pytest.importorskip("viser")
    viewer = show(human(), port=18080, block=False)
    yield viewer
    viewer.stop()


@pytest.fixture(scope="module")
def remote():
    """A viewer for every computer."""
    pytest.importorskip("viser")
    viewer = show(human(), host="0.0.0.0", port=18180, block=False)
    yield viewer
    viewer.stop()


def get(viewer, path="/", **headers):
    """Return status, headers and content of a page; a header is left out if it is None."""
    with closing(http.client.HTTPConnection("127.0.0.1", viewer.server.get_port(), timeout=TIMEOUT)) as connection:
        connection.putrequest("GET", path, skip_host=True)
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def connects(viewer, host, origin, cookie=None):
    """Return whether a websocket is opened and the scene is sent through it."""
    import viser
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    headers = {"Cookie": cookie} if cookie else {}
    port = viewer.server.get_port()
    channel = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    try:
        with connect(
            f"ws://{host}:{port}", sock=channel, origin=origin, additional_headers=headers,
            subprotocols=[f"viser-v{viser.__version__}"], max_size=None,
        ) as websocket:  # fmt: skip
            return len(websocket.recv(timeout=TIMEOUT)) > 0
    except InvalidStatus as error:
        assert error.response.status_code == HTTPStatus.FORBIDDEN
        return False


def test_page_needs_the_name_of_this_computer(local):
    port = local.server.get_port()
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        status, _, content = get(local, Host=f"{name}:{port}")
        assert status == HTTPStatus.OK and b"<html" in content
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.0.1", "[", ""):
        status, _, content = get(local, Host=f"{name}:{port}")
        assert status == HTTPStatus.FORBIDDEN and b"Host" in content
    assert get(local, Host=None)[0] == HTTPStatus.FORBIDDEN


def test_page_of_another_origin_is_refused(local):
    own = f"127.0.0.1:{local.server.get_port()}"
    assert get(local, Host=own, Origin=f"http://{own}")[0] == HTTPStatus.OK
    for origin in ("http://evil.example", f"https://{own}", "http://127.0.0.1:1", "null"):
        status, _, content = get(local, Host=own, Origin=origin)
        assert status == HTTPStatus.FORBIDDEN and b"Origin" in content


def test_websocket_needs_host_and_origin_of_the_page(local):
    port = local.server.get_port()
    assert connects(local, "127.0.0.1", f"http://127.0.0.1:{port}")
    assert connects(local, "localhost", f"http://localhost:{port}")
    assert not connects(local, "127.0.0.1", "http://evil.example")
    assert not connects(local, "127.0.0.1", f"http://localhost:{port}")
    assert not connects(local, "127.0.0.1", None)
    # DNS rebinding: the page and the viewer have the same foreign name
    assert not connects(local, "evil.example", f"http://evil.example:{port}")


def test_viewer_for_other_computers_needs_its_token(remote):
    own = f"127.0.0.1:{remote.server.get_port()}"
    token = remote.guard.token
    assert len(token) >= 32 and remote.url.endswith(f"/?token={token}")
    for path in ("/", "/?token=", "/?token=wrong", f"/?token={token[:-1]}", "/?other=1"):
        status, headers, content = get(remote, path, Host=own)
        assert status == HTTPStatus.FORBIDDEN and b"token" in content
        assert token not in str(headers) and token.encode() not in content
    status, headers, _ = get(remote, f"/?token={token}", Host=own)
    cookie = headers["Set-Cookie"]
    assert status == HTTPStatus.OK and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    kept = cookie.partition(";")[0]
    assert get(remote, "/", Host=own, Cookie=kept)[0] == HTTPStatus.OK
    assert get(remote, "/", Host=own, Cookie=f"{kept[:-1]}")[0] == HTTPStatus.FORBIDDEN
    assert get(remote, f"/?token={token}", Host="evil.example")[0] == HTTPStatus.FORBIDDEN
    assert connects(remote, "127.0.0.1", f"http://{own}", kept)
    assert not connects(remote, "127.0.0.1", f"http://{own}")
    assert not connects(remote, "127.0.0.1", f"http://{own}", f"{kept}x")
    assert not connects(remote, "127.0.0.1", "http://evil.example", kept)


def test_viewer_for_this_computer_has_no_token(local):
    assert local.guard.token is None and "token" not in local.url
    assert local.url == f"http://127.0.0.1:{local.server.get_port()}"


def test_addresses_of_other_computers_are_refused(person):
    for host in ("192.0.2.1", "no such name"):
        with pytest.raises(SettingsError, match="not an address of this computer"):
            show(person, host=host, block=False)


def test_viewer_whose_requests_are_not_checked_is_refused(person, monkeypatch):
    """A version of viser that starts its server in another way would not be guarded: then nothing is served."""
    pytest.importorskip("viser")
    monkeypatch.setattr(RequestGuard, "guarded", lambda guard, process_request: process_request)
    started = []
    monkeypatch.setattr(browser_viewer, "refuses_foreign_host", lambda host, port: started.append(port) or
                        refuses_foreign_host(host, port))  # fmt: skip
    with pytest.raises(SettingsError, match="cannot check requests with viser"):
        show(person, port=18280, block=False)
    assert not refuses_foreign_host("127.0.0.1", started[0])
