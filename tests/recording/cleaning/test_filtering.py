"""Filter, resampling and time stamps: properties of every signal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.numerics.filters import lowpass
from borelli.recording.cleaning.filtering import crop, infer_decimals, lowpass_filter, repair_time_stamps, resample
from borelli.recording.recording import Recording, make_dataset

from ..walker import RATE, recording


def gain(frequency, cutoff=6.0, rate=100.0, order=4):
    """Amplitude that is left of a long sine."""
    time = np.arange(4000) / rate
    wave = np.exp(2j * np.pi * frequency * time)
    middle = slice(1500, 2500)
    out = lowpass(wave.real, rate, cutoff, order)[middle]
    return abs(2.0 * np.mean(out * np.conj(wave[middle])))


@pytest.mark.parametrize(
    ("cutoff", "rate", "order"), [(6.0, 100.0, 4), (6.0, 60.0, 4), (10.0, 250.0, 4), (20.0, 100.0, 2), (6.0, 120.0, 8)]
)
def test_the_gain_at_the_cutoff_is_the_root_of_a_half_after_both_passes(cutoff, rate, order):
    # the mean over whole cycles is exact to the share of a cycle that is left over
    assert gain(cutoff, cutoff, rate, order) == pytest.approx(np.sqrt(0.5), abs=2e-3)


def test_the_filter_passes_low_and_removes_high_frequencies_without_lag():
    assert gain(0.5) == pytest.approx(1.0, abs=1e-3)
    assert gain(30.0) < 2e-3
    time = np.arange(1000) / 100.0
    bump = np.exp(-(((time - 5.0) / 0.2) ** 2))
    out = lowpass(bump, 100.0, 6.0)
    assert np.argmax(out) == np.argmax(bump)
    assert np.allclose(out, out[::-1][np.r_[-1:999]], atol=1e-4)


def test_lines_pass_unchanged_to_their_ends():
    line = np.linspace(-1.0, 3.0, 300)[:, None] * [1.0, -2.0]
    assert np.allclose(lowpass(line, 100.0, 6.0), line, atol=1e-9)


def test_runs_between_holes_are_filtered_each_by_itself():
    signal = np.random.default_rng(0).normal(size=(200, 2))
    holed = signal.copy()
    holed[80:90, 0] = np.nan
    out = lowpass(holed, 100.0, 6.0)
    assert np.isnan(out[80:90, 0]).all()
    assert np.array_equal(out[:80, 0], lowpass(signal[:80, 0], 100.0, 6.0))
    assert np.allclose(out[:, 1], lowpass(signal[:, 1], 100.0, 6.0))


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 9])
def test_short_runs_are_not_changed(frames):
    out = lowpass(np.ones((frames, 3)), 100.0, 6.0)
    assert np.allclose(out, 1.0)


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 50.0, 80.0, float("nan")])
def test_impossible_cutoffs_are_refused(cutoff):
    with pytest.raises(SettingsError, match="Nyquist"):
        lowpass(np.ones(10), 100.0, cutoff)


def test_the_filter_removes_noise_and_is_noted():
    truth, noisy = recording(), recording(noise=0.002)
    smoothed = lowpass_filter(noisy)
    off = [
        np.std(one.data["marker_position"].values - truth.data["marker_position"].values) for one in (noisy, smoothed)
    ]
    assert off[1] < 0.6 * off[0]
    assert "6 Hz" in smoothed.notes[-1].text
    assert lowpass_filter(noisy, cutoff=None).notes == ()
    assert np.array_equal(smoothed.data["plate_force"].values, noisy.data["plate_force"].values)


def test_a_higher_rate_interpolates_every_frame_and_a_lower_one_has_no_aliases():
    walk = recording(plates=False)
    double = resample(walk, 2 * RATE)
    assert double.rate == 2 * RATE
    assert np.allclose(double.data["marker_position"].values[::2], walk.data["marker_position"].values, atol=1e-12)
    time = np.arange(1000) / 100.0
    wave = np.sin(2 * np.pi * 22.0 * time)
    points = np.stack([time, 0 * time, wave], axis=1)[:, None]
    fast = Recording(make_dataset({"marker_position": points}, {"marker": ["M"]}, rate=100.0))
    slow = resample(fast, 20.0).data["marker_position"].values[20:-20, 0]
    assert np.abs(slow[:, 2]).max() < 0.03  # it would be 1 without the low-pass
    assert np.allclose(np.diff(slow[:, 0]), 0.05)


def test_plates_are_resampled_only_on_request():
    walk = recording()
    assert resample(walk, 50.0).analog_rate == walk.analog_rate
    other = resample(walk, analog_rate=500.0)
    assert other.analog_rate == 500.0
    assert other.rate == walk.rate
    peaks = [one.data["plate_force"].values[..., 2].max() for one in (walk, other)]
    assert peaks[1] == pytest.approx(peaks[0], rel=0.01)
    with pytest.raises(SettingsError, match="not between 0 and 1e6 Hz"):
        resample(walk, 0.0)


@settings(max_examples=40)
@given(st.sampled_from([24.0, 59.94, 60.0, 100.0, 120.0, 150.0, 240.0]), st.integers(10, 400))
def test_times_rounded_to_milliseconds_are_restored_to_the_last_bit(rate, frames):
    exact = np.arange(frames) / rate
    data = make_dataset(
        {"marker_position": np.ones((frames, 1, 3))}, {"marker": ["M"], "time": np.round(exact, 3)}, rate=rate
    )
    repaired = repair_time_stamps(Recording(data))
    assert np.array_equal(repaired.data["time"].values, exact)


def test_times_that_no_rate_explains_are_kept():
    stamps = np.cumsum(np.random.default_rng(0).uniform(0.005, 0.015, 100))
    data = make_dataset({"marker_position": np.ones((100, 1, 3))}, {"marker": ["M"], "time": stamps})
    assert np.array_equal(repair_time_stamps(Recording(data)).data["time"].values, stamps)


def test_decimals_are_counted():
    assert infer_decimals(np.array([0.0, 0.017, 0.033])) == 3
    assert infer_decimals(np.array([0.0, 1.0, 2.0])) == 0
    assert infer_decimals(np.arange(5) / 60.0) == 9


def test_cropping_keeps_the_frames_between_start_and_end():
    cropped = crop(recording(), 0.5, 1.25)
    times = cropped.data["time"].values
    assert (times[0], times[-1]) == (0.5, 1.25)
    # the last frame keeps all its samples, so that frames and samples still go together
    assert cropped.data["analog_time"].values[[0, -1]] == pytest.approx([0.5, 1.259])
    between = crop(recording(), 0.503, 1.252)
    assert between.data["analog_time"].values[[0, -1]] == pytest.approx([0.51, 1.259])
    with pytest.raises(SettingsError, match="No frame lies between"):
        crop(recording(), 50.0, 60.0)
    with pytest.raises(SettingsError, match="not before the end"):
        crop(recording(), 2.0, 1.0)


def test_single_precision_is_filtered_in_double():
    coarse = np.random.default_rng(3).normal(size=(200, 2, 3)).astype(np.float32)
    filtered = lowpass(coarse, 100.0, 6.0)
    assert filtered.dtype == np.float64
    assert np.array_equal(filtered, lowpass(coarse.astype(np.float64), 100.0, 6.0))
