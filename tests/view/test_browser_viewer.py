"""The browser viewer serves a page, to this computer only."""

import urllib.request

import pytest

from borelli.errors import SettingsError
from borelli.view.browser_viewer import show


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.org"])
def test_other_hosts_are_refused(person, host):
    with pytest.raises(SettingsError, match="this computer only"):
        show(person, host=host, block=False)


def test_viewer_serves_a_page(person):
    pytest.importorskip("viser")
    viewer = show(person, port=18080, block=False)
    try:
        with urllib.request.urlopen(viewer.url, timeout=10) as response:
            assert response.status == 200
    finally:
        viewer.stop()
