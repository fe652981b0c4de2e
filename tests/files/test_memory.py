"""Memory that requests need: what is available, and refusals in one sentence that names the option."""

import subprocess
import sys

import numpy as np
import pytest

import borelli as bo
from borelli.analysis.monte_carlo import monte_carlo
from borelli.errors import SettingsError
from borelli.files import memory
from borelli.model.model import Body, Model, Shape
from borelli.recording.cleaning.filtering import resample


@pytest.fixture
def one_gigabyte(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1_000_000_000)


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a folder whose files stand for those of the system."""
    monkeypatch.setattr(memory, "MEMORY_INFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    return tmp_path


def test_the_systems_memory_is_read(system):
    (system / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    assert memory.available_memory() == 8000 * 1024


def test_a_container_limits_the_memory_and_its_cached_files_do_not_count(system):
    (system / "meminfo").write_text("MemAvailable:    8000 kB\n")
    (system / "memory.max").write_text("5000000\n")
    (system / "memory.current").write_text("4000000\n")
    (system / "memory.stat").write_text("anon 1000000\nfile 3000000\n")
    assert memory.available_memory() == 4_000_000
    (system / "memory.max").write_text("max\n")
    assert memory.available_memory() == 8000 * 1024


def test_an_older_container_limits_the_memory(system):
    (system / "memory").mkdir()
    for name, text in (("limit_in_bytes", "900"), ("usage_in_bytes", "100"), ("stat", "cache 40\nrss 60\n")):
        (system / "memory" / f"memory.{name}").write_text(text)
    assert memory.available_memory() == 840


@pytest.mark.parametrize("text", ["", "MemAvailable:\n", "MemAvailable: many kB\n"])
def test_a_constant_is_assumed_where_nothing_is_stated(system, text):
    (system / "meminfo").write_text(text)
    assert memory.available_memory() == memory.ASSUMED_MEMORY


def test_a_request_that_fits_is_not_refused(one_gigabyte):
    memory.check_memory(0.7e9, "rate: This", "Lower it.")
    with pytest.raises(SettingsError, match=r"rate: This needs about 0.9 GB of memory, but 1 GB are available\. Lower"):
        memory.check_memory(0.9e9, "rate: This", "Lower it.")


def test_a_record_of_a_billion_frames_is_refused():
    with pytest.raises(SettingsError, match=r"duration: A record of 1000000001 frames .*record_every"):
        bo.simulate(bo.gallery_scene("pendulum").model, duration=1e3, step=1e-6)


def test_fewer_recorded_frames_fit(one_gigabyte):
    model = bo.gallery_scene("pendulum").model
    with pytest.raises(SettingsError, match="record_every"):
        bo.simulate(model, duration=5.0, step=1e-6)
    assert bo.simulate(model, duration=0.01, step=1e-5, record_every=100).sizes["time"] == 11


def test_thousands_of_touching_shapes_are_refused(one_gigabyte):
    shapes = (Shape("sphere", (0.1,)),)
    bodies = tuple(Body(f"ball {i}", 1.0, inertia=np.eye(3), shapes=shapes) for i in range(6000))
    with pytest.raises(SettingsError, match=r"6000 shapes that may touch .* fewer shapes"):
        bo.simulate(Model("heap", bodies), duration=0.1)


def test_a_video_of_too_many_frames_is_refused(tmp_path, one_gigabyte):
    result = bo.simulate(bo.gallery_scene("pendulum").model, duration=1.0)
    with pytest.raises(SettingsError, match=r"rate: A video of 10000 frames .* Lower the rate"):
        bo.video(result, tmp_path / "long.gif", rate=1e4)


def test_an_absurd_rate_is_refused(one_gigabyte):
    with pytest.raises(SettingsError, match=r"rate: A recording of \d+ samples at 500000 Hz .* lower rate"):
        resample(bo.synthetic_recording("walk").recording, 500_000.0)


def test_too_many_repeats_are_refused(one_gigabyte):
    recording = bo.synthetic_recording("reach").recording

    def outputs(_):
        return {"a": np.zeros(100_000)}

    with pytest.raises(SettingsError, match=r"repeats: An analysis of 100000 Monte Carlo repeats .*--monte-carlo"):
        monte_carlo(outputs, recording, 100_000)


@pytest.mark.parametrize(("error", "words"), [("MemoryError", "memory of this computer"), ("RecursionError", "nested")])
def test_the_command_line_turns_what_no_estimate_foresaw_into_a_sentence(error, words):
    code = (
        "import sys, borelli.cli as cli\n"
        f"def fail(): raise {error}\n"
        "cli.app = fail\n"
        "sys.argv = ['borelli']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert words in done.stderr and "Traceback" not in done.stderr and done.stderr.count("\n") == 1
