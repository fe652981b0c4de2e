"""EMG processing: envelopes and onsets of modulated noise with a known truth; recordings of laboratories."""

import json

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.recording.emg.agreement import emg_agreement
from borelli.recording.emg.envelopes import emg_envelopes
from borelli.recording.emg.processing import EmgSettings, envelope, find_activity
from borelli.recording.io import read_recording
from borelli.recording.recording import Recording, make_dataset

from ...shared_data import shared

RATE, FRAME_RATE, DURATION = 2000.0, 100.0, 10.0
RECTIFIED = np.sqrt(2.0 / np.pi)
"""Mean of |x| of normal noise of unit standard deviation."""


def noise(rng, samples):
    """Return noise of unit standard deviation from 30 to 300 Hz, the range of surface EMG."""
    spectrum = np.fft.rfft(rng.normal(size=samples))
    frequency = np.fft.rfftfreq(samples, 1.0 / RATE)
    signal = np.fft.irfft(np.where((frequency > 30.0) & (frequency < 300.0), spectrum, 0.0), samples)
    return signal / signal.std()


def make_recording(signals, names, units="V", rate=RATE):
    samples = len(signals[0])
    frames = int(samples / rate * FRAME_RATE)
    labels = {"marker": ["C7"], "channel": names, "channel_units": [units] * len(names)}
    variables = {"marker_position": np.zeros((frames, 1, 3)), "analog": np.stack(signals, axis=1)}
    return Recording(make_dataset(variables, labels, rate=FRAME_RATE, analog_rate=rate), "trial")


def codes(data):
    return {note["code"] for note in json.loads(data.attrs["notes"])}


@pytest.fixture(scope="module")
def bursts():
    """Return times, a slow envelope [V] and EMG of it with hum, offset and drift."""
    rng = np.random.default_rng(1)
    t = np.arange(int(DURATION * RATE)) / RATE
    truth = 1e-3 * (0.02 + np.clip(np.sin(2.0 * np.pi * t), 0.0, None) ** 2)
    disturbance = 5e-4 + 1e-3 * np.sin(2.0 * np.pi * 0.7 * t) + 2e-4 * t
    return t, truth, truth * noise(rng, len(t)) + disturbance


def test_the_envelope_is_recovered(bursts):
    """The error is that of averaged noise: |x| of noise of B Hz has the variance f / 2B of its squared mean below f.

    With f = 6 Hz and B = 270 Hz the error is 10.5 % of the amplitude; eight channels of 10 s, active for a third of the
    time, have some 300 independent samples, so that their RMS varies by 4 % of it (2 sd: 8 %). Smoothing adds 1 %.
    """
    t, truth, signal = bursts
    names = ["RSOL", "LSOL", "RTA", "LTA", "RVL", "LVL", "RRF", "LRF"]
    disturbance = signal - truth * noise(np.random.default_rng(1), len(t))
    signals = [truth * noise(np.random.default_rng(seed), len(t)) + disturbance for seed in range(8)]
    data = emg_envelopes(make_recording(signals, names), settings=EmgSettings(normalization="none"))
    assert data["emg"].dims == ("analog_time", "muscle") and data["emg_envelope"].dims == ("time", "muscle")
    assert data["muscle"].values[:2].tolist() == ["soleus_r", "soleus_l"]
    found = data["emg_envelope"].values / RECTIFIED
    expected = np.interp(data["time"].values, t, truth)[:, None]
    bound = 1.08 * np.sqrt(6.0 / (2.0 * 270.0)) + 0.01
    assert np.sqrt(np.mean((found - expected) ** 2)) < bound * np.sqrt(np.mean(expected**2))
    assert found.mean() == pytest.approx(expected.mean(), rel=0.03)
    for channel in found.T:
        agreement = emg_agreement(channel, expected[:, 0], FRAME_RATE)
        assert agreement.r > 0.97 and abs(agreement.lag) <= 0.01


def test_the_envelope_does_not_fall_at_its_ends():
    """Constant noise: the mean of the first and last 0.05 s of 20 channels is that of the middle, within 3 sd."""
    ends, middle = [], []
    for seed in range(20):
        found = envelope(np.abs(noise(np.random.default_rng(seed), 4000)), RATE, 6.0)
        ends += [found[:100].mean(), found[-100:].mean()]
        middle.append(found.mean())
    # one sample of the envelope varies by 10.5 %, doubled in variance by the mirrored half
    assert np.mean(ends) == pytest.approx(np.mean(middle), rel=3.0 * 0.105 * np.sqrt(2.0 / 40.0))


def test_drift_and_offset_do_not_matter(bursts):
    _, truth, signal = bursts
    rng = np.random.default_rng(1)
    clean = truth * noise(rng, len(truth))
    with_drift, without = (emg_envelopes(make_recording([s], ["SOL"]))["emg_envelope"].values for s in (signal, clean))
    np.testing.assert_allclose(with_drift, without, atol=0.02)


def test_peak_and_mvc_normalization(bursts):
    recording = make_recording([bursts[2]], ["RSOL"])
    volts = emg_envelopes(recording, settings=EmgSettings(normalization="none"))["emg_envelope"]
    peak = emg_envelopes(recording)["emg_envelope"]
    assert volts.attrs["units"] == "V" and peak.attrs["units"] == "1"
    # the peak is that of all samples, of which frames show every twentieth
    np.testing.assert_allclose(peak, volts / volts.max(), rtol=0.01)
    mvc = emg_envelopes(recording, settings=EmgSettings(normalization="mvc"), mvc={"soleus_r": 2e-3})["emg_envelope"]
    np.testing.assert_allclose(mvc, volts / 2e-3)
    with pytest.raises(SettingsError, match="soleus_r"):
        emg_envelopes(recording, settings=EmgSettings(normalization="mvc"), mvc={"soleus_l": 1.0})


def test_units_are_converted(bursts):
    volts = make_recording([bursts[2]], ["RSOL"])
    microvolts = make_recording([1e6 * bursts[2]], ["RSOL"], units="uV")
    settings = EmgSettings(normalization="none")
    expected = emg_envelopes(volts, settings=settings)["emg_envelope"]
    np.testing.assert_allclose(emg_envelopes(microvolts, settings=settings)["emg_envelope"], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_onsets_are_found(seed):
    """Bursts of twelve times the baseline: onsets and ends within 30 ms, and none besides."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(4.0 * RATE)) / RATE
    bursts = [(0.8, 1.3), (2.0, 2.4), (3.0, 3.3)]
    active = np.any([(t >= start) & (t < end) for start, end in bursts], axis=0)
    rectified = np.abs(noise(rng, len(t)) * np.where(active, 1.2, 0.1))
    found = find_activity(rectified, RATE, EmgSettings())
    edges = np.flatnonzero(np.diff(np.concatenate([[0], found.astype(int), [0]]))) / RATE
    np.testing.assert_allclose(edges, np.ravel(bursts), atol=0.03)


def test_short_bursts_and_pauses_do_not_count():
    t = np.arange(int(2.0 * RATE)) / RATE
    rest = 0.1 + 0.01 * np.sin(2.0 * np.pi * 3.0 * t)
    spike = rest + ((t > 0.5) & (t < 0.51)) + 0.0
    pause = rest + ((t > 1.0) & (t < 1.5) & ~((t > 1.2) & (t < 1.21)))
    settings = EmgSettings()
    assert not find_activity(spike, RATE, settings).any()
    found = find_activity(pause, RATE, settings)
    assert np.count_nonzero(np.diff(found.astype(int))) == 2 and found[int(1.205 * RATE)]


def test_gaps_stay_gaps_and_do_no_harm(bursts):
    _, _, signal = bursts
    whole = emg_envelopes(make_recording([signal], ["SOL"]), settings=EmgSettings(normalization="none"))
    holed = signal.copy()
    holed[8000:8600] = np.nan
    data = emg_envelopes(make_recording([holed], ["SOL"]), settings=EmgSettings(normalization="none"))
    time, found = data["time"].values, data["emg_envelope"].values[:, 0]
    inside = (time > 4.001) & (time < 4.299)
    assert np.isnan(found[inside]).all() and not data["emg_active"].values[inside].any()
    far = (time < 3.6) | (time > 4.7)
    np.testing.assert_allclose(found[far], whole["emg_envelope"].values[far, 0], rtol=1e-3, atol=1e-7)


def test_defects_are_noted(bursts):
    _, truth, signal = bursts
    clipped = np.clip(truth * noise(np.random.default_rng(2), len(truth)), -8e-4, 8e-4)
    names = ["RSOL", "RTA", "RVL", "EMG 7", "GM", "RSOL.1"]
    flat = np.full(len(signal), 2.0)
    data = emg_envelopes(make_recording([signal, clipped, flat, signal, signal, signal], names))
    assert data["muscle"].values.tolist() == ["soleus_r", "tibialis_anterior_r"]
    assert codes(data) == {"emg_channels", "emg_saturated", "emg_constant", "emg_unknown", "emg_repeated"}
    texts = {note["code"]: note["text"] for note in json.loads(data.attrs["notes"])}
    assert "RTA" in texts["emg_saturated"] and "RVL" in texts["emg_constant"] and "RSOL.1" in texts["emg_repeated"]
    assert "EMG 7" in texts["emg_unknown"] and "gluteus_maximus" in texts["emg_unknown"]


def test_channels_can_be_named(bursts):
    recording = make_recording([bursts[2], bursts[2]], ["EMG 1", "EMG 2"])
    data = emg_envelopes(recording, muscles={"EMG 2": "soleus_l"})
    assert data["muscle"].values.tolist() == ["soleus_l"] and data["muscle_channel"].values.tolist() == ["EMG 2"]
    with pytest.raises(SettingsError, match="No channel has the name"):
        emg_envelopes(recording)
    with pytest.raises(SettingsError, match="EMG 3"):
        emg_envelopes(recording, muscles={"EMG 3": "soleus_l"})


def test_a_low_rate_narrows_the_band_pass(bursts):
    slow = make_recording([bursts[2][::4]], ["SOL"], rate=RATE / 4.0)
    data = emg_envelopes(slow)
    assert "emg_band_pass" in codes(data)
    with pytest.raises(SettingsError, match="processed=True"):
        emg_envelopes(make_recording([bursts[2][::50]], ["SOL"], rate=40.0))


def test_agreement_of_shifted_signals():
    rng = np.random.default_rng(3)
    envelope = np.convolve(rng.normal(size=600) ** 2, np.hanning(30) / 15.0, mode="same")
    late = np.concatenate([np.full(5, np.nan), 3.0 * envelope[:-5] + 1.0])
    found = emg_agreement(late, envelope, 100.0)
    assert found.lag == pytest.approx(0.05) and found.r_at_lag == pytest.approx(1.0) and found.r < 0.99
    same = emg_agreement(envelope, envelope, 100.0)
    assert same.r == pytest.approx(1.0) and same.lag == 0.0 and same.on_off == 1.0
    opposite = emg_agreement(-envelope, envelope, 100.0)
    assert opposite.r == pytest.approx(-1.0) and opposite.on_off < opposite.on_off_by_chance
    assert np.isnan(emg_agreement(np.ones(600), envelope, 100.0).r)
    with pytest.raises(SettingsError, match="samples"):
        emg_agreement(np.full(600, np.nan), envelope, 100.0)


@pytest.mark.data
def test_recordings_of_laboratories():
    """Muscles, defects and phases of files whose content was looked at."""
    gait = emg_envelopes(read_recording(shared("c3d/motionanalysis_gait/Gait.c3d")))
    assert len(gait["muscle"]) == 14 and {"soleus_l", "rectus_femoris_r", "vasti_l"} <= set(gait["muscle"].values)
    # the legs alternate, and the shank muscles of a leg do
    by_name = gait["emg_envelope"].to_series().unstack()
    assert np.corrcoef(by_name["soleus_l"], by_name["soleus_r"])[0, 1] < 0.0
    assert np.corrcoef(by_name["gastrocnemius_r"], by_name["soleus_r"])[0, 1] > 0.6
    sprint = emg_envelopes(read_recording(shared("c3d/sprint_8plates/JA1Gait35.c3d")))
    assert len(sprint["muscle"]) == 12 and "hamstrings_lateral" in sprint["muscle"].values
    assert "AddMagnus" in next(n["text"] for n in json.loads(sprint.attrs["notes"]) if n["code"] == "emg_saturated")
    with pytest.raises(SettingsError, match="EMG 1"):
        emg_envelopes(read_recording(shared("c3d/qualisys_walk/Qualisys.c3d")))


@pytest.mark.data
def test_envelopes_of_a_table_are_used_as_they_are():
    recording = read_recording(shared("opensim/moco_examples/walking_3d/electromyography.sto"))
    data = emg_envelopes(recording, settings=EmgSettings(normalization="none"))
    assert len(data["muscle"]) == 10 and "emg" not in data and "emg_processed" in codes(data)
    column = recording.data["column_value"].sel(column="soleus").values
    np.testing.assert_array_equal(data["emg_envelope"].sel(muscle="soleus").values, np.maximum(column, 0.0))
