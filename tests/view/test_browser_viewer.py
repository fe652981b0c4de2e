"""Plots show what they are given; the browser view serves this computer, and it alone."""

import urllib.request

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.view.browser_viewer import show
from borelli.view.plots import plot


def test_plot_draws_the_energies(person, tmp_path):
    figure = plot(person, tmp_path / "p.png")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert np.allclose(lines["potential"].get_ydata(), [0.0, 0.5, 1.0])
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_plot_takes_the_coordinates_that_move_most(person):
    figure = plot(person, coordinates=2)
    shown = [line.get_label() for line in figure.axes[2].get_lines()]
    assert shown == [str(name) for name in person["coordinate"].values[-1:-3:-1]]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.org"])
def test_other_hosts_are_refused(person, host):
    with pytest.raises(SettingsError, match="this computer only"):
        show(person, host=host, block=False)


def test_workbench_serves_a_page(person):
    pytest.importorskip("viser")
    workbench = show(person, port=18080, block=False)
    try:
        with urllib.request.urlopen(workbench.url, timeout=10) as answer:
            assert answer.status == 200
    finally:
        workbench.stop()
