"""Plots show the values of the dataset they are given."""

import numpy as np

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
