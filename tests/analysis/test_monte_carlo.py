"""Monte Carlo: the spread that theory says, the same answer whatever the number of workers."""

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


def middle(recording):
    """Mean of two markers, and the height of one."""
    points = recording.data["marker_position"].values
    return {"middle": points[:, [0, 2]].mean(axis=1), "height": points[:, 0, 2]}


def test_the_spread_is_that_of_the_noise(recording):
    band = monte_carlo(middle, recording, 800, 2e-3, seed=3)
    assert np.allclose(band.value["height"], recording.data["marker_position"].values[:, 0, 2])
    # a mean of two has the noise over sqrt(2); 800 repeats know a deviation to 1/sqrt(1600)
    assert np.mean(band.sd["middle"]) == pytest.approx(2e-3 / np.sqrt(2.0), rel=0.02)
    assert np.mean(band.sd["height"]) == pytest.approx(2e-3, rel=0.05)
    width = (band.high["height"] - band.low["height"]).mean()
    assert width == pytest.approx(2 * 1.96 * 2e-3, rel=0.05)
    assert band.repeats == 800 and not band.notes


def test_workers_do_not_change_a_bit(recording):
    one = monte_carlo(middle, recording, 20, 1e-3, seed=5)
    four = monte_carlo(middle, recording, 20, 1e-3, seed=5, workers=4)
    other = monte_carlo(middle, recording, 20, 1e-3, seed=6)
    assert all(np.array_equal(one.sd[name], four.sd[name]) for name in one.sd)
    assert not np.array_equal(one.sd["height"], other.sd["height"])


def test_noise_by_marker(recording):
    band = monte_carlo(middle, recording, 50, {"c": 1e-3})
    assert np.all(band.sd["height"] < 1e-14)
    assert np.mean(band.sd["middle"]) == pytest.approx(0.5e-3, rel=0.1)


def test_doubt_about_the_model(recording):
    class Fitted:
        model = 1.0

        def draw(self, random):
            return 1.0 + 0.1 * random.normal()

    def run(recording, model):
        return {"size": np.array([model])}

    band = monte_carlo(run, recording, 400, 0.0, models=Fitted())
    assert band.value["size"][0] == 1.0  # of the fit itself, not of one that was drawn
    assert band.sd["size"][0] == pytest.approx(0.1, rel=0.1)
    band = monte_carlo(run, recording, 400, 0.0, models=[1.0, 3.0])
    assert band.value["size"][0] == 1.0 and band.sd["size"][0] == pytest.approx(1.0, rel=0.02)


def test_percentiles_are_those_of_the_repeats(recording):
    drawn = []

    def run(recording):
        drawn.append(recording.data["marker_position"].values[0, 0])
        return {"place": drawn[-1]}

    band = monte_carlo(run, recording, 30, 1e-3)
    low, high = np.percentile(drawn[1:], (2.5, 97.5), axis=0)
    # differences are kept to seven digits
    assert band.low["place"] == pytest.approx(low, abs=1e-9) and band.high["place"] == pytest.approx(high, abs=1e-9)


def test_what_only_some_repeats_know(recording):
    """A foot that stands in most repeats has a centre of pressure there; in few, none; and none where none was told."""
    calls = []

    def run(recording):
        calls.append(len(calls))
        i = calls[-1]
        return {"x": np.array([i, i if i % 4 else np.nan, i if i % 4 == 0 else np.nan, np.nan if i == 0 else i])}

    band = monte_carlo(run, recording, 40, 1e-3, value={"x": np.array([0.0, 0.0, 0.0, np.nan])})
    assert np.isfinite(band.sd["x"]).tolist() == [True, True, False, False]
    told = [i for i in range(40) if i % 4]
    assert band.sd["x"][1] == pytest.approx(np.std(told, ddof=1))
    assert band.high["x"][1] == pytest.approx(np.percentile(told, 97.5))


def test_dimensions_and_units_are_kept(recording):
    band = monte_carlo(lambda r: {"markers": r.data["marker_position"].values}, recording, 10, 1e-3)
    told = band.to_dataset(recording.data)
    assert told["markers_sd"].dims == ("time", "marker", "axis")
    assert told["markers_low"].attrs["units"] == "m"


def test_failures_are_counted(recording):
    calls = []

    def run(recording):
        calls.append(1)
        if len(calls) % 5 == 0:
            raise BorelliError("no")
        return {"x": np.zeros(1)}

    band = monte_carlo(run, recording, 20, 1e-3)
    assert band.repeats == 16 and "4 of 20" in band.notes[0].text
    with pytest.raises(BorelliError, match="does not bear noise of 1 mm"):
        monte_carlo(
            lambda r: run(r) if r is recording else (_ for _ in ()).throw(BorelliError("no")), recording, 4, 1e-3
        )


@pytest.mark.parametrize(("settings", "said"), [
    ({"n": 1}, "at least 2"), ({"noise": -1e-3}, "between 0 and 1 m"), ({"noise": {"d": 1e-3}}, "marker 'd'"),
    ({"workers": 0}, "workers is 0"),
])  # fmt: skip
def test_settings_out_of_range_are_refused(recording, settings, said):
    with pytest.raises(SettingsError, match=said):
        monte_carlo(middle, recording, **settings)
