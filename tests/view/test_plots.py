"""Plots show the values of the dataset they are given."""

import numpy as np
import pytest

from borelli.recording.recording import Recording, make_dataset
from borelli.view.plot_style import MAX_LABEL_LENGTH, plot_name
from borelli.view.plots import plot


def test_plot_draws_the_energies(person, tmp_path):
    figure = plot(person, tmp_path / "p.png")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert np.allclose(lines["potential"].get_ydata(), [0.0, 0.5, 1.0])
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_plot_takes_the_coordinates_with_the_largest_range(person):
    figure = plot(person, coordinates=2)
    shown = [line.get_label() for line in figure.axes[2].get_lines()]
    assert shown == [str(name) for name in person["coordinate"].values[-1:-3:-1]]


@pytest.mark.filterwarnings("error")
def test_odd_names_are_drawn_without_warnings(tmp_path):
    names = ["x" * 500, "$\\frac{", "腕 Ω é", "a\x1b[2Jb", "_hidden"]
    points = np.random.default_rng(0).normal(size=(20, len(names), 3))
    points[3:5] = np.nan
    data = make_dataset({"marker_position": points}, {"marker": names}, rate=100.0)
    plot(Recording(data, "$name$" * 20), tmp_path / "odd.png")
    assert plot_name("x" * 500) == "x" * MAX_LABEL_LENGTH + "..."
    assert plot_name("") == plot_name(" ") == "(no name)" and plot_name("_a") == " _a"
    assert plot_name("$a$ 腕 Ω") == r"\$a\$ ? Ω"
