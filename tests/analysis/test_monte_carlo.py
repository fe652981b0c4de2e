"""Monte Carlo: the standard deviation that theory predicts, and the same result for any number of workers."""

import numpy as np
import pytest

from borelli.analysis.monte_carlo import monte_carlo
from borelli.errors import BorelliError, SettingsError
from borelli.recording.recording import Recording, make_dataset


@pytest.fixture
def recording():
    points = np.random.default_rng(0).normal(size=(20, 3, 3))
    points[4, 1] = np.nan
    return Recording(make_dataset({"marker_position": points}, {"marker": ["a", "b", "c"]}, rate=100.0))


def mean_and_height(recording):
    """Return the mean of two markers, and the height of one."""
    points = recording.data["marker_position"].values
    return {"mean": points[:, [0, 2]].mean(axis=1), "height": points[:, 0, 2]}


def test_standard_deviation_is_that_of_the_noise(recording):
    result = monte_carlo(mean_and_height, recording, 800, 2e-3, seed=3)
    assert np.allclose(result.value["height"], recording.data["marker_position"].values[:, 0, 2])
    # a mean of two has the noise over sqrt(2); the standard deviation of 800 repeats errs by 1/sqrt(1600)
    assert np.mean(result.sd["mean"]) == pytest.approx(2e-3 / np.sqrt(2.0), rel=0.02)
    assert np.mean(result.sd["height"]) == pytest.approx(2e-3, rel=0.05)
    width = (result.high["height"] - result.low["height"]).mean()
    assert width == pytest.approx(2 * 1.96 * 2e-3, rel=0.05)
    assert result.repeats == 800 and not result.notes


def test_workers_do_not_change_a_bit(recording):
    one = monte_carlo(mean_and_height, recording, 20, 1e-3, seed=5)
    four = monte_carlo(mean_and_height, recording, 20, 1e-3, seed=5, workers=4)
    other = monte_carlo(mean_and_height, recording, 20, 1e-3, seed=6)
    assert all(np.array_equal(one.sd[name], four.sd[name]) for name in one.sd)
    assert not np.array_equal(one.sd["height"], other.sd["height"])


def test_noise_by_marker(recording):
    result = monte_carlo(mean_and_height, recording, 50, {"c": 1e-3})
    assert np.all(result.sd["height"] < 1e-14)
    assert np.mean(result.sd["mean"]) == pytest.approx(0.5e-3, rel=0.1)


def test_model_uncertainty(recording):
    class Fitted:
        model = 1.0

        def draw(self, random):
            return 1.0 + 0.1 * random.normal()

    def run(recording, model):
        return {"size": np.array([model])}

    result = monte_carlo(run, recording, 400, 0.0, models=Fitted())
    assert result.value["size"][0] == 1.0  # of the fit itself, not of a drawn model
    assert result.sd["size"][0] == pytest.approx(0.1, rel=0.1)
    result = monte_carlo(run, recording, 400, 0.0, models=[1.0, 3.0])
    assert result.value["size"][0] == 1.0 and result.sd["size"][0] == pytest.approx(1.0, rel=0.02)


def test_interval_contains_95_of_100_repeats(recording):
    """It is symmetric about the value; of 99 magnitudes the quantile is the 95th."""
    drawn = []

    def run(recording):
        drawn.append(recording.data["marker_position"].values[0, 0])
        return {"position": drawn[-1]}

    result = monte_carlo(run, recording, 99, 1e-3)
    half = np.sort(np.abs(np.array(drawn[1:]) - drawn[0]), axis=0)[94]
    # differences are kept to seven digits
    assert result.low["position"] == pytest.approx(drawn[0] - half, abs=1e-9)
    assert result.high["position"] == pytest.approx(drawn[0] + half, abs=1e-9)


def test_errors_that_only_raise_a_quantity_leave_its_truth_inside(recording):
    """The RMS of noise: that of the recording is too large already, and the interval reaches as far below as above."""
    noisy = recording.data["marker_position"] * 0.0 + 1e-3 * np.random.default_rng(1).normal(size=(20, 3, 3))
    own = recording.with_data(recording.data.assign(marker_position=noisy))
    result = monte_carlo(lambda r: {"rms": np.sqrt(np.nanmean(r.data["marker_position"].values ** 2))}, own, 40, 1e-3)
    assert result.low["rms"] < result.value["rms"] < result.high["rms"] and result.low["rms"] >= 0.0


def test_interval_of_a_quantity_that_is_never_negative_ends_at_zero(recording):
    def run(recording):
        size = np.abs(recording.data["marker_position"].values[0, 0, 0])
        return {"raised": 1e-5 + 1e3 * size, "lowered": -1e-5 - 1e3 * size, "both": np.array(1e-5)}

    flat = recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"] * 0.0))
    result = monte_carlo(run, flat, 20, 1e-3)
    assert result.low["raised"] == 0.0 and result.high["lowered"] == 0.0
    assert result.high["raised"] > 0.1 and result.low["both"] == result.high["both"] == 1e-5


def test_further_errors_reach_the_analysis(recording):
    """The variation gets the recording with noise and the repeat's own generator."""

    def vary(noisy, random):
        return noisy, {"factor": 1.0 + 0.1 * random.normal()}

    def run(recording, factor=1.0):
        return {"height": recording.data["marker_position"].values[:, 0, 2], "factor": np.array(factor)}

    one, four = (monte_carlo(run, recording, 200, 1e-3, vary=vary, workers=workers) for workers in (1, 4))
    assert one.value["factor"] == 1.0 and one.sd["factor"] == pytest.approx(0.1, rel=0.15)
    assert one.sd["height"].mean() == pytest.approx(1e-3, rel=0.05)
    assert np.array_equal(one.sd["factor"], four.sd["factor"])


def test_values_known_in_most_repeats_have_an_interval(recording):
    """Such as the center of pressure of a foot that is loaded in most repeats."""
    calls = []

    def run(recording):
        calls.append(len(calls))
        i = calls[-1]
        return {"x": np.array([i, i if i % 4 else np.nan, i if i % 4 == 0 else np.nan, np.nan if i == 0 else i])}

    result = monte_carlo(run, recording, 40, 1e-3, value={"x": np.array([0.0, 0.0, 0.0, np.nan])})
    assert np.isfinite(result.sd["x"]).tolist() == [True, True, False, False]
    known = [i for i in range(40) if i % 4]
    assert result.sd["x"][1] == pytest.approx(np.std(known, ddof=1))
    # of 30 ordered values 1, 2, 3, 5..., the quantile is at position 0.95 (30 + 1)
    assert result.high["x"][1] == pytest.approx(np.interp(0.95 * 31, np.arange(1, 31), known))


def test_dimensions_and_units_are_kept(recording):
    result = monte_carlo(lambda r: {"marker_position": r.data["marker_position"].values}, recording, 10, 1e-3)
    data = result.to_dataset(recording.data)
    assert data["marker_position_sd"].dims == ("time", "marker", "axis")
    assert data["marker_position_low"].attrs["units"] == "m"


def test_failed_repeats_are_counted(recording):
    calls = []

    def run(recording):
        calls.append(1)
        if len(calls) % 5 == 0:
            raise BorelliError("no")
        return {"x": np.zeros(1)}

    result = monte_carlo(run, recording, 20, 1e-3)
    assert result.repeats == 16 and "4 of 20" in result.notes[0].text
    with pytest.raises(BorelliError, match="failed with 1 mm marker noise"):
        monte_carlo(
            lambda r: run(r) if r is recording else (_ for _ in ()).throw(BorelliError("no")), recording, 4, 1e-3
        )


@pytest.mark.parametrize(("settings", "message"), [
    ({"n": 1}, "at least 2"), ({"noise": -1e-3}, "between 0 and 1 m"), ({"noise": {"d": 1e-3}}, "marker 'd'"),
    ({"workers": 0}, "workers: 0"),
])  # fmt: skip
def test_settings_out_of_range_are_refused(recording, settings, message):
    with pytest.raises(SettingsError, match=message):
        monte_carlo(mean_and_height, recording, **settings)
