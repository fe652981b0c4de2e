"""Runs side by side: sizes, frames, one camera for all, and refused arguments."""

import numpy as np
import pytest
from PIL import Image

from borelli.errors import SettingsError
from borelli.experiments.control.planks import rotated_plank
from borelli.view.panels import View, film, stills

SMALL = View(width=48, height=40)


@pytest.fixture(scope="module")
def runs():
    time = np.linspace(0.0, 1.0, 11)
    return {"rotates": rotated_plank(time, -time), "rests": rotated_plank(time[:6], 0.0 * time[:6])}


def test_stills_are_a_row_for_each_run(runs, tmp_path):
    image = np.asarray(Image.open(stills(runs, tmp_path / "stills.png", (0.0, 1.0), SMALL)).convert("RGB"), float)
    assert image.shape == (81, 97, 3)  # two panels of 48 by 40 each way and a line between
    # between the title above and the time below
    (first, last), (rest_first, rest_last) = (
        (image[top : top + 12, :48], image[top : top + 12, 49:]) for top in (18, 59)
    )
    assert np.abs(first - last).max() > 50.0
    assert (rest_first == rest_last).all() and (rest_first == first).all()


def test_film_has_a_frame_for_each_instant(runs, tmp_path):
    with Image.open(film(runs, tmp_path / "film.gif", SMALL, rate=4.0, columns=1)) as moving:
        assert moving.size == (48, 81)
        assert moving.n_frames == 5  # 0, 0.25, ... 1 s


def test_arguments_without_content_are_refused(runs, tmp_path):
    with pytest.raises(SettingsError, match="at least one time"):
        stills(runs, tmp_path / "stills.png", ())
    with pytest.raises(SettingsError, match="no run to draw"):
        film({}, tmp_path / "film.gif")
    with pytest.raises(SettingsError, match="both must be positive"):
        film(runs, tmp_path / "film.gif", rate=0.0)
    with pytest.raises(SettingsError, match=r"Unknown file extension of an animation '\.mp4'"):
        film(runs, tmp_path / "film.mp4", SMALL, rate=1.0)
